// The text of a report. No editor API here.
import * as l10n from '@vscode/l10n';

export interface Facts {
  versions: [string, string][];
  doctor: string;
  /** A line for each debug session; '' without one. */
  session: string;
  log: readonly string[];
  /** The user's folder: written `~`, since its name is often the user's. */
  home: string;
}

const MOST_LOG = 60;

/** What happened is asked for first; facts follow, in fences that their own text cannot end. */
export function issueText({ versions, doctor, session, log, home }: Facts): string {
  const fenced = (text: string): string => {
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
    const fence = '`'.repeat(longest + 1);
    return `${fence}text\n${text || '-'}\n${fence}`;
  };
  const hidden = (text: string): string => (home.length > 1 ? text.replaceAll(home, '~') : text);
  const parts = [
    `<!-- ${l10n.t('Nothing was sent. Read this, take out what is private, and paste it where you report the fault.')} -->`,
    `## ${l10n.t('What I did')}\n\n1. `,
    `## ${l10n.t('What I expected, and what happened instead')}\n`,
    `## ${l10n.t('Versions')}\n\n${versions.map(([name, value]) => `- ${name}: ${value}`).join('\n')}`,
    `## dvm doctor\n\n${fenced(doctor)}`,
    ...(session ? [`## ${l10n.t('Debug sessions')}\n\n${fenced(session)}`] : []),
    `## ${l10n.t('The end of the log')}\n\n${fenced(log.slice(-MOST_LOG).join('\n'))}`,
  ];
  return hidden(`${parts.join('\n\n')}\n`);
}
