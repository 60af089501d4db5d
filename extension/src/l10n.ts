// The language of texts. Every room says l10n.t of @vscode/l10n, also where there is no editor API (pages, tests); here it learns the
// editor's language. Imported before all else: some texts are tables.
import { config } from '@vscode/l10n';
import * as vscode from 'vscode';

if (vscode.l10n.bundle) config({ contents: vscode.l10n.bundle });
