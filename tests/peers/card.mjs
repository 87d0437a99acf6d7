// A client that shows the card of lispbox (MCP Apps) in Chromium. The official kit is the host: it exchanges messages with
// the card, which is in a frame without the rights of its page, and passes calls on to the server. The argument is a JSON
// object: where the browser and the packages are, the binary, and a home folder. A line is printed after each part.
import assert from 'node:assert';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const told = JSON.parse(process.argv[2]);
const { chromium } = createRequire(import.meta.url)(told.playwright);
const { AppBridge } = await import(told.bridge);
const { Client } = await import(told.client);
const { StdioClientTransport } = await import(join(dirname(told.client), 'stdio.mjs'));

const URI = 'ui://lispbox/approval';
const done = (part) => console.log(part);

// The page of the host: the card in a frame that may run scripts and nothing else, not even send forms.
const page_ = (html) => `<!doctype html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; width: 100% }</style>
<iframe sandbox="allow-scripts" title="card"></iframe>
<script>
  const frame = document.querySelector('iframe');
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
  frame.srcdoc = ${JSON.stringify(html).replaceAll('<', '\\u003c')}.replace('<head>', '<head><meta http-equiv="Content-Security-Policy" content="' + policy + '">');
  window.addEventListener('message', (event) => event.source === frame.contentWindow && window.toHost(event.data));
  window.toCard = (message) => frame.contentWindow.postMessage(message, '*');
  window.grow = (height) => { frame.style.height = height + 'px'; };
</script>`;

async function connect() {
  const client = new Client({ name: 'host', version: '1' }, {
    capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } },
  });
  const env = { HOME: told.home, PATH: '/usr/bin:/bin' };
  await client.connect(new StdioClientTransport({ command: told.lispbox, args: ['serve'], cwd: '/', env, stderr: 'ignore' }));
  return client;
}

const text = (result) => result.content[0].text;
const call = (client, name, given) => client.callTool({ name, arguments: given });

async function waits(client, program) {
  const [, run] = text(await call(client, 'lisp_eval', { program })).match(/\{"run": "(\w+)"\}/);
  return run;
}

// Shows the card of a run, as a client does when its model has called the tool.
async function show(browser, client, run, { theme = 'light', width = 300, colorScheme = 'light' } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.problems = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.problems.push(message.text()));
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('request', (request) => /^https?:/.test(request.url()) && page.problems.push(request.url()));
  const { contents: [document] } = await client.readResource({ uri: URI });
  const result = await call(client, 'lisp_approve', { run });
  const bridge = new AppBridge(client, { name: 'host', version: '1' }, { serverTools: {}, message: { text: {} } },
    { hostContext: { theme, containerDimensions: { width, maxHeight: 4000 } } });
  page.said = [];
  bridge.onmessage = async ({ content }) => {
    page.said.push(content[0].text);
    return {};
  };
  bridge.addEventListener('sizechange', ({ height }) => page.evaluate((height) => window.grow(height), height).catch(() => {}));
  const transport = {
    start: async () => {},
    close: async () => {},
    send: (message) => page.evaluate((message) => window.toCard(message), message),
  };
  await page.exposeFunction('toHost', (message) => transport.onmessage?.(message));
  const ready = new Promise((resolve) => bridge.addEventListener('initialized', resolve));
  await bridge.connect(transport);
  await page.setContent(page_(document.text));
  await ready;
  await bridge.sendToolInput({ arguments: { run } });
  await bridge.sendToolResult(result);
  page.card = page.frameLocator('iframe');
  await page.card.locator('h1').waitFor();
  return page;
}

async function picture(page, name) {
  if (told.screenshots) await page.screenshot({ path: join(told.screenshots, `card-${name}.png`), fullPage: true });
}

async function fits(page) {
  const [inner, outer] = await page.card.locator('html').evaluate((html) => [html.scrollWidth, html.clientWidth]);
  assert.ok(inner <= outer, `${inner} pixels in ${outer}`);
}

const heading = async (page, name) => page.card.getByRole('heading', { level: 1, name }).last().waitFor();
const went = async (client, run) => text(await call(client, 'lisp_eval', { run }));

async function use(browser, client) {
  const two = '(pmap (fn [l] (try (notes/share {:line l}) (catch ToolDenied e (ex-message e)))) ["one" "two"])';
  let run = await waits(client, two);
  let page = await show(browser, client, run);
  assert.deepEqual(await page.card.locator('.arguments pre').allInnerTexts(), ['one', 'two']);
  await fits(page);
  await picture(page, 'two');
  done('shown');

  await page.card.getByRole('button', { name: 'Approve call 1.1 of notes/share' }).click();
  await page.card.getByText('approved').first().waitFor();
  assert.equal(await page.card.getByRole('button', { name: 'Approve call 1.1 of notes/share' }).count(), 0);
  await page.card.getByLabel(/^Reason/).fill('not now');
  await page.card.getByRole('button', { name: 'Deny call 1.2 of notes/share' }).click();
  await heading(page, 'Decided');
  await picture(page, 'decided');
  await page.card.getByRole('button', { name: 'Go on with the program' }).click();
  await page.card.locator('#go-on[disabled]').waitFor();
  assert.deepEqual(page.said, [`I have decided. Continue with {"run": "${run}"} in lisp_eval.`]);
  assert.match(await went(client, run), /added one.*not now/);
  assert.deepEqual(page.problems, []);
  done('by mouse');

  run = await waits(client, '(notes/share {:line "three"})');
  page = await show(browser, client, run, { width: 480 });
  await page.card.getByRole('button', { name: /^Approve/ }).and(page.card.locator(':enabled')).waitFor();
  await page.card.locator('select').focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await heading(page, 'Decided');
  assert.equal(await page.card.locator('h1').evaluate((title) => document.activeElement === title), true);
  assert.match(await went(client, run), /added three/);
  // The key that sends a form from a field denies, and never approves.
  run = await waits(client, '(try (notes/share {:line "four"}) (catch ToolDenied e (ex-message e)))');
  page = await show(browser, client, run);
  await page.card.getByRole('button', { name: /^Approve/ }).and(page.card.locator(':enabled')).waitFor();
  await page.card.getByLabel(/^Reason/).fill('no');
  await page.keyboard.press('Enter');
  await heading(page, 'Decided');
  assert.match(await went(client, run), /no/);
  assert.deepEqual(page.problems, []);
  done('by keyboard');

  run = await waits(client, '(notes/share {:line "five"})');
  const ground = (page) => page.card.locator('body').evaluate((body) => getComputedStyle(body).backgroundColor);
  // The theme of the client counts, not that of the system.
  page = await show(browser, client, run, { theme: 'dark', colorScheme: 'light' });
  const dark = await ground(page);
  await picture(page, 'dark');
  const light = await show(browser, client, run, { theme: 'light', colorScheme: 'dark' });
  assert.notEqual(dark, await ground(light));
  done('in the dark');

  const hostile = await waits(client, `(notes/share {:line ${JSON.stringify(told.hostile)}})`);
  const strange = await show(browser, client, hostile);
  assert.equal(await strange.card.locator('.arguments pre').innerText(), told.hostile.replace('\u202e', '\\u{202e}').replace('\u200b', '\\u{200b}'));
  assert.deepEqual(await strange.card.locator('h1').allInnerTexts(), ['Waiting for a decision']);
  assert.equal(await strange.card.locator('img').count(), 0);
  assert.equal(await strange.card.getByRole('button', { name: /^Approve/ }).count(), 1);
  await fits(strange);
  await picture(strange, 'hostile');
  assert.deepEqual(strange.problems, []);
  done('hostile');

  // Two cards of one run: the second decision comes too late, and the card says so.
  await page.card.getByRole('button', { name: /^Deny/ }).click();
  await heading(page, 'Decided');
  await light.card.getByRole('button', { name: /^Approve/ }).click();
  await light.card.getByRole('alert').and(light.card.getByText(/^Nothing was changed: call 1.1 has been decided on already/)).waitFor();
  await picture(light, 'late');
  assert.match(await went(client, run), /ToolDenied/);
  done('late');
}

const browser = await chromium.launch({ executablePath: told.chromium, args: ['--no-sandbox'] });
const client = await connect();
try {
  await use(browser, client);
} finally {
  await browser.close();
  await client.close();
}
process.exit(0);
