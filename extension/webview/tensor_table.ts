// The values of a plane as a table: rows and columns are drawn as they come into sight, and their values asked for in tiles.
import {
  FrozenColumnsModule,
  FormatModule,
  InteractionModule,
  KeybindingsModule,
  SelectRangeModule,
  Tabulator,
  type CellComponent,
  type ColumnDefinition,
} from 'tabulator-tables';
import { short } from '../src/text';

Tabulator.registerModule([FormatModule, FrozenColumnsModule, InteractionModule, KeybindingsModule, SelectRangeModule]);

const [TILE_ROWS, TILE_COLUMNS] = [64, 16];
/** What one table has; of a larger plane it has the part that was gone to. */
const [MOST_ROWS, MOST_COLUMNS] = [4096, 256];

type Span = [number, number];

export class ValueTable {
  private table: Tabulator | undefined;
  private built = false;
  private rows: Span = [0, 0];
  private columns: Span = [0, 0];
  private extents: [number, number] = [0, 0];
  private readonly tiles = new Map<string, { texts: string[]; columns: Span; version: number }>();
  private readonly asked = new Set<string>();
  private version = 0;
  private wanted = false;

  /** ask: for the texts of a part, which come back through `fill`. */
  constructor(
    private readonly box: HTMLElement,
    private readonly ask: (rows: Span, columns: Span) => void,
  ) {}

  /** Another plane, or the same with other values: what is in sight is asked for anew. */
  show(rows: number, columns: number, afresh: boolean): void {
    this.version++;
    this.asked.clear();
    if (afresh) this.tiles.clear();
    if (this.table && this.extents[0] === rows && this.extents[1] === columns) return this.redraw();
    this.extents = [rows, columns];
    this.tiles.clear();
    this.build([0, Math.min(rows, MOST_ROWS)], [0, Math.min(columns, MOST_COLUMNS)]);
  }

  fill(rows: Span, columns: Span, texts: string[]): void {
    this.tiles.set(`${rows[0]},${columns[0]}`, { texts, columns, version: this.version });
    this.asked.delete(`${rows[0]},${columns[0]}`);
    this.redraw();
  }

  /** Nothing came of what was asked: it may be asked again. */
  failed(): void {
    this.asked.clear();
  }

  goTo(row: number, column: number): void {
    const at = (where: number, extent: number, most: number, tile: number): Span => {
      const first = Math.max(0, Math.min(Math.floor((where - most / 2) / tile) * tile, Math.ceil((extent - most) / tile) * tile));
      return [first, Math.min(extent, first + most)];
    };
    const [r, c] = [Math.min(row, this.extents[0] - 1), Math.min(column, this.extents[1] - 1)];
    const inside = (i: number, [a, b]: Span): boolean => i >= a && i < b;
    const scroll = (): void => {
      void this.table?.scrollToRow(r, 'center', false)?.catch(() => undefined);
      void this.table?.scrollToColumn(`c${c}`, 'middle', false)?.catch(() => undefined);
    };
    if (inside(r, this.rows) && inside(c, this.columns) && this.built) return scroll();
    this.build(at(r, this.extents[0], MOST_ROWS, TILE_ROWS), at(c, this.extents[1], MOST_COLUMNS, TILE_COLUMNS), scroll);
  }

  /** The part that the table has, for the clipboard. */
  span(): { rows: Span; columns: Span } {
    return { rows: this.rows, columns: this.columns };
  }

  private build(rows: Span, columns: Span, then?: () => void): void {
    this.table?.destroy();
    [this.rows, this.columns, this.built] = [rows, columns, false];
    const ids = (span: Span): number[] => Array.from({ length: span[1] - span[0] }, (_, i) => span[0] + i);
    const column = (c: number): ColumnDefinition => ({
      title: String(c),
      field: `c${c}`,
      width: 84,
      hozAlign: 'right',
      headerHozAlign: 'right',
      formatter: (cell: CellComponent) => this.cell(cell, c),
    });
    this.table = new Tabulator(this.box, {
      height: '100%',
      layout: 'fitData',
      index: 'id',
      data: ids(rows).map((id) => ({ id })),
      columns: ids(columns).map(column),
      rowHeader: {
        title: 'row',
        field: 'id',
        width: 72,
        hozAlign: 'right',
        headerHozAlign: 'right',
        frozen: true,
        cssClass: 'head',
      },
      renderHorizontal: 'virtual',
      selectableRange: 1,
      selectableRangeRows: true,
      selectableRangeColumns: true,
      placeholder: 'No elements',
    } as never);
    this.table.on('tableBuilt', () => {
      this.built = true;
      then?.();
    });
  }

  private cell(cell: CellComponent, column: number): string {
    const row = (cell.getData() as { id: number }).id;
    const [top, left] = [Math.floor(row / TILE_ROWS) * TILE_ROWS, Math.floor(column / TILE_COLUMNS) * TILE_COLUMNS];
    const tile = this.tiles.get(`${top},${left}`);
    if (tile?.version !== this.version) this.want(top, left);
    const text = tile?.texts[(row - top) * (tile.columns[1] - tile.columns[0]) + column - left];
    const element = cell.getElement();
    element.title = text === undefined ? '' : `${text} at row ${row}, column ${column}`;
    element.classList.toggle('bad', text !== undefined && /NaN|Inf/.test(text));
    if (text === undefined) return '…';
    return /^[-\d]/.test(text) && !/Inf/.test(text) ? short(Number(text)) : text;
  }

  private want(top: number, left: number): void {
    const key = `${top},${left}`;
    if (this.asked.has(key)) return;
    this.asked.add(key);
    this.ask([top, Math.min(top + TILE_ROWS, this.extents[0])], [left, Math.min(left + TILE_COLUMNS, this.extents[1])]);
  }

  private redraw(): void {
    if (this.wanted || !this.built) return;
    this.wanted = true;
    requestAnimationFrame(() => {
      this.wanted = false;
      if (this.built) this.table?.getRows('visible').forEach((row) => row.reformat());
    });
  }
}
