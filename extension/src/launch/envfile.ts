// Reads NAME=value files (.env). No editor API here.

/** Variables of an env file: comments, `export`, single quotes (as they are) and double quotes (with \n, \", \\) are understood. */
export function parseEnvFile(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*?)\s*$/.exec(line);
    if (!match) continue;
    const [, name = '', raw = ''] = match;
    const quoted = /^(['"])(.*)\1(?:\s+#.*)?$/.exec(raw);
    if (!quoted) found[name] = raw.replace(/\s+#.*$/, '');
    else if (quoted[1] === "'") found[name] = quoted[2] ?? '';
    else found[name] = (quoted[2] ?? '').replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return found;
}
