// All tests of the extension host, by theme.
import { editor } from './editor';
import { launch } from './launch';
import { programs } from './programs';
import { reload } from './reload';
import { views } from './views';
import { watch } from './watch';

export type Tests = Record<string, () => Promise<void>>;

export const groups: Record<string, Tests> = { launch, watch, reload, programs, editor, views };
