// The page's language: the texts came with the page. Imported before all else, since some texts are tables.
import { config } from '@vscode/l10n';

const bundle = document.getElementById('l10n')?.textContent;
if (bundle) config({ contents: bundle });
