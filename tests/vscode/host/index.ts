// Runs inside the extension host with the whole editor API. A bare runner: each test gets a clean debug state and a time limit.
import { groups } from './groups';
import { cleanUp } from './session';

const LIMIT_MS = 60_000;

export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const [group, tests] of Object.entries(groups)) {
    for (const [name, test] of Object.entries(tests)) {
      const started = Date.now();
      const line = `${group}: ${name}`;
      try {
        const limit = new Promise<never>((_, reject) =>
          setTimeout(() => reject(new Error(`longer than ${LIMIT_MS} ms`)), LIMIT_MS).unref(),
        );
        await Promise.race([test(), limit]);
        report(`ok ${line} (${Date.now() - started} ms)`);
      } catch (error) {
        failed.push(line);
        report(`not ok ${line}\n${error instanceof Error ? error.stack : String(error)}`);
      }
      await cleanUp();
    }
  }
  if (failed.length) throw new Error(`${failed.length} failed: ${failed.join('; ')}`);
}

// The runner outside reads these lines from the workbench's log.
// eslint-disable-next-line no-console
const report = (text: string): void => text.split('\n').forEach((line) => console.log(`[host-test] ${line}`));
