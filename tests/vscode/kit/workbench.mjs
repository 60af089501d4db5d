// What a person does in the workbench, and what they see, as calls: palette, editors, gutter, debug views, webviews.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { PATIENCE, sleep, until } from './until.mjs';

export class Workbench {
  constructor(page, context, cleanUp) {
    Object.assign(this, { page, context, cleanUp, console: [] });
    page.on('console', (m) => this.console.push(`${m.type()}: ${m.text()}`));
  }

  async close() {
    await this.context.close().catch(() => {});
    this.cleanUp();
  }

  /** Errors the extensions logged or threw (the workbench repeats them here). */
  extensionErrors() {
    return this.console.filter((l) => /^error: \[[\w-]+\.[\w-]+\]/.test(l));
  }

  async screenshot(file) {
    mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
    await this.page.screenshot({ path: file });
    return file;
  }

  // --- palette ---------------------------------------------------------------

  get quickInput() {
    return this.page.locator('.quick-input-widget:visible');
  }

  /** Opens the palette with `text` typed in it and waits for its rows. */
  async #palette(key, text) {
    // Anything that takes the focus closes it: open it again until the text stays.
    await until('the quick input', async () => {
      if (!(await this.quickInput.count())) await this.page.keyboard.press(key);
      const input = this.quickInput.locator('input').first();
      await input.fill(text, { timeout: 1500 });
      return (await input.inputValue({ timeout: 500 })) === text;
    });
  }

  /** Runs a command by its palette label, e.g. 'Debug: Start Debugging'. */
  async command(label) {
    await this.#palette('F1', '>' + label);
    await (await this.#row(label)).click();
    await this.page.mouse.move(1, 1); // no tooltip from whatever was below
  }

  /** The same without the mouse: a command (or, with Control+P, a file) is typed, and Enter runs it once it is the row on top. */
  async typed(label, key = 'F1', prefix = '>') {
    await this.#palette(key, prefix + label);
    await until(`"${label}" on top`, async () => {
      const top = this.quickInput.locator('.monaco-list-row.focused .label-name').first();
      return (await top.textContent({ timeout: 1000 }))?.trim() === label;
    });
    await this.page.keyboard.press('Enter');
  }

  async #row(label) {
    const rows = this.quickInput.locator('.monaco-list-row');
    return until(`palette row "${label}"`, async () => {
      for (const row of await rows.all()) {
        const name = await row.locator('.quick-input-list-row .label-name').first().textContent({ timeout: 1000 });
        if (name?.trim() === label) return row;
      }
    });
  }

  /** Labels the palette offers for a query (does not run anything). */
  async paletteRows(query, key = 'F1', prefix = '>') {
    await this.#palette(key, prefix + query);
    await sleep(500);
    const names = await this.quickInput.locator('.quick-input-list-row .label-name').allTextContents();
    await this.page.keyboard.press('Escape');
    return names.map((s) => s.trim());
  }

  /** Types into an open input box or quick pick and accepts it. */
  async accept(text) {
    const box = this.quickInput.locator('input').first();
    await box.waitFor();
    if (text !== undefined) await box.fill(text);
    await this.page.keyboard.press('Enter');
  }

  // --- editors ---------------------------------------------------------------

  async openFile(name) {
    await this.typed(path.basename(name), 'Control+P', '');
    await this.editor(name).locator('.view-line').first().waitFor();
  }

  /** Puts the cursor of the active editor on a line and column, both from 1. */
  async gotoLine(line, column = 1) {
    await this.#palette('Control+G', `:${line}:${column}`);
    await this.page.keyboard.press('Enter');
    await until('the cursor there', async () => (await this.statusBar()).includes(`Ln ${line}, Col ${column}`), PATIENCE);
  }

  /** The text editor showing the file of that base name. */
  editor(name) {
    return this.page.locator(`.editor-instance .monaco-editor[data-uri$="/${path.basename(name)}"]`).first();
  }

  async #lineBox(name, line) {
    const ed = this.editor(name);
    return until(`line ${line} of ${name} on screen`, async () => {
      const cell = ed
        .locator('.margin-view-overlays .line-numbers')
        .filter({ hasText: new RegExp(`^${line}$`) })
        .first();
      return (await cell.count()) ? cell.boundingBox() : undefined;
    });
  }

  /** Clicks the glyph margin at `line` (the breakpoint gutter). */
  async gutterClick(name, line, options = {}) {
    // Lenses that come after the file was opened push its lines down: the click waits until they rest.
    const row = await until(`line ${line} of ${name} to rest`, async () => {
      const before = await this.#lineBox(name, line);
      await sleep(300);
      const now = await this.#lineBox(name, line);
      return now.y === before.y ? now : undefined;
    });
    const ed = await this.editor(name).boundingBox();
    await this.page.mouse.click(ed.x + 10, row.y + row.height / 2, options);
  }

  /** Lines with a breakpoint glyph in the editor. */
  async breakpointLines(name) {
    return this.#glyphLines(name, '[class*="codicon-debug-breakpoint"]:not([class*="hint"])');
  }

  /** Lines of the file marked by any glyph-margin widget matching `css`. */
  async #glyphLines(name, css) {
    return this.editor(name).evaluate((ed, css) => {
      const y = (e) => {
        const r = e.getBoundingClientRect();
        return r.top + r.height / 2;
      };
      const nums = [...ed.querySelectorAll('.margin-view-overlays .line-numbers')].map((e) => [y(e), +e.textContent]);
      return [...ed.querySelectorAll(`.glyph-margin-widgets ${css}, .margin-view-overlays ${css}`)].map((e) => {
        const at = y(e);
        return nums.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a))[1];
      });
    }, css);
  }

  /** Clicks the gutter and waits for the glyph to appear (or to go). */
  async toggleBreakpoint(name, line) {
    const had = (await this.breakpointLines(name)).includes(line);
    await this.gutterClick(name, line);
    await until(
      `breakpoint at ${name}:${line} to ${had ? 'go' : 'appear'}`,
      async () => (await this.breakpointLines(name)).includes(line) !== had,
      PATIENCE,
    );
  }

  /** Text of a line as shown, inline values included. */
  async lineText(name, line) {
    const row = await this.#lineBox(name, line);
    return this.editor(name).evaluate(
      (ed, top) =>
        [...ed.querySelectorAll('.view-line')]
          .find((e) => Math.abs(e.getBoundingClientRect().top - top) < 4)
          ?.textContent.replace(/\u00a0/g, ' '),
      row.y,
    );
  }

  /** Screen position of a word in the editor (for hovers). */
  async wordBox(name, line, word) {
    const row = await this.#lineBox(name, line);
    return this.editor(name).evaluate(
      (ed, [top, word]) => {
        const view = [...ed.querySelectorAll('.view-line')].find((e) => Math.abs(e.getBoundingClientRect().top - top) < 4);
        const walk = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
        for (let n; (n = walk.nextNode()); ) {
          const i = n.data.indexOf(word);
          if (i < 0) continue;
          const r = document.createRange();
          r.setStart(n, i);
          r.setEnd(n, i + word.length);
          const b = r.getBoundingClientRect();
          return { x: b.x + b.width / 2, y: b.y + b.height / 2 };
        }
      },
      [row.y, word],
    );
  }

  /** Text of the debug hover over a word, e.g. '20'. */
  async hover(name, line, word) {
    const at = await this.wordBox(name, line, word);
    if (!at) throw new Error(`no "${word}" on line ${line}`);
    const box = this.page.locator('.debug-hover-widget:visible');
    return until('the debug hover', async () => {
      await this.page.mouse.move(at.x - 3, at.y);
      await this.page.mouse.move(at.x, at.y, { steps: 3 });
      await box.waitFor({ timeout: 2500 });
      return (await box.innerText()).trim();
    });
  }

  // --- debugging ---------------------------------------------------------------

  /** Line numbers highlighted as the stopped position in a file's editor. */
  async stoppedLine(name) {
    const lines = await this.#glyphLines(name, '[class*="codicon-debug-stackframe"], .codicon-debug-stackframe');
    return lines[0];
  }

  /** Waits until the debugger is stopped, at `line` of `file` if given. */
  async waitStopped({ file, line, timeout = PATIENCE } = {}) {
    // 'Continue' is only shown (else 'Pause') while stopped; floating or docked.
    await this.page.locator('.codicon-debug-continue:visible').first().waitFor({ timeout });
    if (file && line) await until(`stop at ${file}:${line}`, async () => (await this.stoppedLine(file)) === line, timeout);
  }

  async waitEnded(timeout = PATIENCE) {
    await until(
      'the session to end',
      async () => !(await this.page.locator('.codicon-debug-stop:visible, .codicon-debug-disconnect:visible').count()),
      timeout,
    );
  }

  /** Opens a pane section of the current side bar by its title. */
  async expandPane(title, expanded = true) {
    const head = this.page
      .locator('.pane-header')
      .filter({ hasText: new RegExp(`^${title}`, 'i') })
      .first();
    await head.waitFor();
    await this.page.mouse.move(1, 1); // a tooltip of the row that has come to lie below it would cover the header
    if ((await head.getAttribute('aria-expanded')) !== String(expanded)) await head.click();
  }

  /** [{level, name, value}] of the rows on screen in the Variables view. */
  async variables() {
    return this.#debugTree('.debug-variables');
  }
  async watches() {
    return this.#debugTree('.debug-watch');
  }

  async #debugTree(css) {
    return this.page.locator(`${css} .monaco-list-row`).evaluateAll((rows) =>
      rows.map((r) => ({
        level: +r.getAttribute('aria-level'),
        name: (r.querySelector('.name') ?? r.querySelector('.scope') ?? r).textContent.trim().replace(/[ =:]+$/, ''),
        value: r.querySelector('.value')?.textContent.trim(),
        expanded: r.getAttribute('aria-expanded'),
      })),
    );
  }

  /** Locator of the first row of the Variables view with that name. */
  variableRow(name) {
    return this.page
      .locator('.debug-variables .monaco-list-row')
      .filter({ hasText: new RegExp(`^\\s*${name}\\b`) })
      .first();
  }

  /** Opens a collapsed row of the Variables view (scope or variable). */
  async expandVariable(name) {
    const row = this.variableRow(name);
    await row.waitFor({ timeout: PATIENCE });
    if ((await row.getAttribute('aria-expanded')) === 'false') await row.locator('.monaco-tl-twistie').click();
  }

  /** Waits for a variable to show, and to have `value` if given. */
  async waitVariable(name, value) {
    return until(`variable ${name}${value === undefined ? '' : ' = ' + value}`, async () => {
      const v = (await this.variables()).find((r) => r.name === name && r.value !== undefined);
      return v && (value === undefined || v.value === value) ? v : undefined;
    });
  }

  /** [{label, kind}] of the Breakpoints view; kind is its icon's name, e.g.
   *  'debug-breakpoint', 'debug-breakpoint-data', 'debug-breakpoint-unverified'. */
  async breakpointRows() {
    return this.page.locator('.debug-breakpoints .monaco-list-row').evaluateAll((rows) =>
      rows.map((r) => ({
        label: r.innerText.replace(/\s+/g, ' ').trim(),
        kind: [...r.querySelectorAll('.codicon')].map((e) => e.className.match(/codicon-(debug-\S+)/)?.[1]).find(Boolean),
      })),
    );
  }

  /** Context-menu command on a row of the Variables view. */
  async variableMenu(name, item) {
    await this.variableRow(name).click({ button: 'right', timeout: PATIENCE });
    // A menu ignores mouse-up for a moment after it opens: click until it goes.
    const label = this.page.locator(`.monaco-menu .action-label:text-is("${item}")`);
    await label.waitFor({ timeout: PATIENCE });
    await until(
      `menu item "${item}" to run`,
      async () => {
        await sleep(200);
        if (await label.count()) await label.click({ timeout: 1000 }).catch(() => {});
        return !(await label.count());
      },
      PATIENCE,
    );
  }

  async openDisassembly() {
    await this.command('Open Disassembly View');
    // Rows load lazily: ready when one is marked as the current instruction.
    await until('the disassembly', async () => (await this.disassembly()).some((r) => r.current));
  }

  /** Rows on screen of the Disassembly View: [{address, text, current, breakpoint}]. */
  async disassembly() {
    return this.page.locator('.disassembly-view .monaco-list-row').evaluateAll((rows) =>
      rows.map((r) => ({
        address: r.getAttribute('aria-label')?.match(/Address: (\w+)/)?.[1],
        text: r.innerText.replace(/\s+/g, ' ').trim(),
        current: !!r.querySelector('[class*="stackframe"]'),
        breakpoint: !!r.querySelector(
          '[class*="codicon-debug-breakpoint"]:not([class*="hint"]), [class*="stackframe-dot"], [class*="breakpoint-stackframe"]',
        ),
      })),
    );
  }

  /** Clicks the breakpoint gutter of an instruction, e.g. '0x1028'. */
  async instructionGutterClick(address) {
    const row = this.page.locator(`.disassembly-view .monaco-list-row[aria-label*="Address: ${address},"]`);
    const b = await row.boundingBox();
    await this.page.mouse.click(b.x + 8, b.y + b.height - 9); // the icon is at the bottom left
  }

  /** Rows of the Call Stack view as text. */
  async callStack() {
    return this.page
      .locator('.debug-call-stack .monaco-list-row')
      .evaluateAll((rows) => rows.map((r) => r.innerText.replace(/\s+/g, ' ').trim()));
  }

  async statusBar() {
    return (await this.page.locator('.statusbar-item:visible').allInnerTexts()).map((s) => s.trim()).filter(Boolean);
  }

  // --- webviews ----------------------------------------------------------------

  /** The frame holding a webview's own document, found by its <title>. */
  async webview(title, timeout = PATIENCE) {
    return until(
      `webview "${title}"`,
      async () => {
        for (const f of this.page.frames()) {
          // page > iframe.webview (host page, service worker) > iframe#active-frame
          if (!f.parentFrame() || !f.parentFrame().parentFrame()) continue;
          if ((await f.title().catch(() => '')) === title) return f;
        }
      },
      timeout,
    );
  }
}
