// The debug adapter's process. The editor's messages pass through; the extension asks questions of its own beside them, whose answers would
// else go through the editor's window and back. No editor API here.
import * as l10n from '@vscode/l10n';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { StreamMessageReader, StreamMessageWriter, type Message } from 'vscode-jsonrpc/node';

/** A message of the debug adapter protocol, as far as it is looked at here. */
export interface DapMessage {
  seq: number;
  type: string;
  command?: string;
  arguments?: unknown;
  event?: string;
  request_seq?: number;
  success?: boolean;
  message?: string;
  body?: unknown;
}

/** What comes of a process: messages for the editor, events for the extension alone, its stderr, its end in words: `seen` where the editor shows them by
    itself. */
export interface Told {
  message(message: DapMessage): void;
  aside(event: DapMessage): void;
  text(text: string): void;
  ended(text: string, seen: boolean): void;
}

/** Events that come many times a second and are for the extension alone. */
const ASIDE = new Set(['dvm/snapshots', 'dvm/step']);
/** Requests whose failure the editor shows. */
const STARTING = new Set(['initialize', 'launch', 'attach']);
/** Numbers of our own requests begin above all that the editor comes to. */
const FIRST_OWN = 2 ** 30;
/** What it has written before its end is still being read. */
const LAST_WORDS_MS = 200;

interface Waiting {
  resolve(body: unknown): void;
  reject(error: Error): void;
}

export class AdapterProcess {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly writer: StreamMessageWriter;
  /** Our own requests that have no answer yet; then the editor's, by number, with what they ask. */
  private readonly own = new Map<number, Waiting>();
  private readonly asked = new Map<number, string>();
  private next = FIRST_OWN;
  private over = '';
  private terminated = false;
  private disposed = false;

  constructor(
    command: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    private readonly told: Told,
  ) {
    this.child = spawn(command, args, { env, stdio: 'pipe', windowsHide: true });
    this.child.once('error', (error) => this.end(l10n.t`cannot start ${command}: ${error.message}`));
    this.child.once('close', (code, signal) => {
      setTimeout(() => this.end(l10n.t`the debug adapter ended with ${signal ?? `code ${code}`}`), LAST_WORDS_MS);
    });
    this.child.stdin.on('error', () => {}); // it has gone: told by its end
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => told.text(text));
    const reader = new StreamMessageReader(this.child.stdout);
    reader.onError((error) => told.text(error.message));
    reader.listen((message) => this.receive(message as unknown as DapMessage));
    this.writer = new StreamMessageWriter(this.child.stdin);
  }

  /** A message of the editor's. */
  send(message: DapMessage): void {
    if (message.type === 'request') {
      this.asked.set(message.seq, message.command ?? '');
      if (this.over) return this.refuse(message.seq);
    }
    this.write(message);
  }

  /** A request of our own; the body of its answer. Throws an Error with the adapter's text. */
  request<T>(command: string, args: object): Promise<T> {
    if (this.over) return Promise.reject(new Error(this.over));
    const seq = ++this.next;
    return new Promise<T>((resolve, reject) => {
      this.own.set(seq, { resolve: resolve as Waiting['resolve'], reject });
      this.write({ seq, type: 'request', command, arguments: args });
    });
  }

  dispose(): void {
    this.disposed = true;
    this.child.kill();
  }

  private write(message: DapMessage): void {
    this.writer.write(message as unknown as Message).catch(() => {}); // it has gone: told by its end
  }

  private receive(message: DapMessage): void {
    if (message.type === 'response' && message.request_seq !== undefined) {
      const waiting = this.own.get(message.request_seq);
      if (waiting) {
        this.own.delete(message.request_seq);
        return message.success ? waiting.resolve(message.body) : waiting.reject(new Error(reasonOf(message)));
      }
      this.asked.delete(message.request_seq);
    }
    if (message.type === 'event') {
      if (ASIDE.has(message.event ?? '')) return this.told.aside(message);
      if (message.event === 'terminated') this.terminated = true;
    }
    this.told.message(message);
  }

  /** Whoever waits for an answer gets one, and the session ends. */
  private end(text: string): void {
    if (this.over) return;
    this.over = text;
    for (const { reject } of this.own.values()) reject(new Error(text));
    this.own.clear();
    const seen = [...this.asked.values()].some((command) => STARTING.has(command));
    for (const seq of [...this.asked.keys()]) this.refuse(seq);
    if (!this.disposed && !this.terminated) {
      this.told.ended(text, seen);
      this.told.message({ seq: 0, type: 'event', event: 'terminated' });
    }
  }

  /** An editor that says goodbye to one that has gone is content. */
  private refuse(seq: number): void {
    const command = this.asked.get(seq) ?? '';
    this.asked.delete(seq);
    const success = command === 'disconnect' || command === 'terminate';
    this.told.message({
      seq: 0,
      type: 'response',
      request_seq: seq,
      command,
      success,
      ...(success ? {} : { message: this.over }),
    });
  }
}

function reasonOf({ message, command, body }: DapMessage): string {
  const { error } = (body ?? {}) as { error?: { format?: string } };
  return message ?? error?.format ?? `${command} failed`;
}
