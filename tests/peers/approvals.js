// Operators who use the approvals page in Chromium. The argument is a JSON object: where the page, the browser and
// playwright-core are, the tokens and the runs. A line is printed after each part.
const assert = require('node:assert');
const { join } = require('node:path');

const told = JSON.parse(process.argv[2]);
const { chromium } = require(told.playwright);
const { runs, tokens } = told;

// Texts with the marks of the page for characters that cannot be seen.
const visible = (text) => text.replace('\u202e', '\\u{202e}').replace('\u200b', '\\u{200b}');

async function main() {
  const browser = await chromium.launch({ executablePath: told.chromium, args: ['--no-sandbox'] });
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}

async function open(browser, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  // A script or a style that the policy refuses is a defect too: nothing of a program may be markup.
  page.problems = [];
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && page.problems.push(message.text()));
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('dialog', (dialog) => page.problems.push(dialog.message()));
  page.setDefaultTimeout(30_000);
  return page;
}

async function signIn(page, token, path = '') {
  await page.goto(told.page + path);
  await page.getByLabel('Operator token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function picture(page, name) {
  if (told.screenshots) await page.screenshot({ path: join(told.screenshots, `${name}.png`), fullPage: true });
}

const heading = (page) => page.getByRole('heading', { level: 1 }).innerText();
const runPage = (run) => `${told.page}/runs/${run}`;
const done = (part) => console.log(part);

async function use(browser) {
  const olga = await open(browser, { viewport: { width: 1200, height: 800 } });
  const otto = await open(browser, { colorScheme: 'dark' });

  await signIn(olga, tokens.principal);
  assert.match(await olga.getByRole('alert').innerText(), /No operator has this token/);
  await picture(olga, 'sign-in');
  await signIn(olga, tokens.olga);
  assert.equal(await heading(olga), 'Programs that wait');
  for (const run of [runs.hostile, runs.denied, runs.contested, runs.many]) {
    assert.equal(await olga.locator(`a[href$="${run}"]`).count(), 1);
  }
  assert.equal(await olga.locator(`a[href$="${runs.expired}"]`).count(), 0);
  const cookies = await olga.context().cookies(told.page);
  assert.deepEqual(cookies.map(({ httpOnly, sameSite, path }) => [httpOnly, sameSite, path]), [[true, 'Strict', '/approvals']]);
  // A browser that was sent to a run goes there after signing in.
  await signIn(otto, tokens.otto, `/runs/${runs.contested}`);
  assert.equal(otto.url(), runPage(runs.contested));
  await picture(olga, 'list');
  done('signed in');

  await olga.locator(`a[href$="${runs.hostile}"]`).click();
  const title = await olga.title();
  const texts = await olga.locator('.arguments pre').allInnerTexts();
  assert.equal(texts[0], visible(told.text));
  assert.match(texts[1], /"html": "<script>document\.title='owned'<\/script>/);
  assert.deepEqual(await olga.locator('.arguments dt code').allInnerTexts(), ['to', 'text']);
  assert.equal(await olga.title(), title);
  assert.equal(await olga.evaluate(() => window.owned), undefined);
  assert.equal(await olga.locator('main script, main img').count(), 0);
  await picture(olga, 'run');
  await otto.goto(runPage(runs.hostile));
  await picture(otto, 'run-dark');
  const grounds = [];
  for (const page of [olga, otto]) grounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  assert.notEqual(grounds[0], grounds[1], 'light and dark');
  await olga.getByRole('button', { name: 'Approve call 1.1 of mail/send' }).click();
  assert.equal(await heading(olga), 'Decided');
  assert.match(await olga.locator('.decisions').innerText(), /approved\s+the approvals page, by olga, less than a minute ago/);
  await picture(olga, 'decided');
  done('approved');

  await olga.goto(runPage(runs.denied));
  // The key that sends a form from a field denies, and never approves.
  await olga.getByLabel(/^Reason/).fill('bob has left');
  await olga.keyboard.press('Enter');
  await olga.waitForURL(runPage(runs.denied));
  assert.match(await olga.locator('.decisions').innerText(), /denied: bob has left/);
  done('denied');

  const expired = await olga.goto(runPage(runs.expired));
  assert.deepEqual([expired.status(), await heading(olga)], [410, 'Expired']);
  done('expired');

  await olga.goto(runPage(runs.contested));
  await otto.goto(runPage(runs.contested));
  await olga.getByRole('button', { name: 'Approve call 1.1 of mail/send' }).click();
  assert.equal(await heading(olga), 'Decided');
  const [late] = await Promise.all([
    otto.waitForResponse((response) => response.request().method() === 'POST'),
    otto.getByRole('button', { name: 'Deny call 1.1 of mail/send' }).click(),
  ]);
  assert.equal(late.status(), 409);
  await otto.getByRole('heading', { name: 'Nothing was changed' }).waitFor();
  assert.match(await otto.locator('.decisions').innerText(), /approved\s+the approvals page, by olga, less than a minute ago/);
  await picture(otto, 'conflict-dark');
  done('contested');

  const phone = await open(browser, { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 });
  await phone.goto(told.page);
  await fits(phone, 'phone-sign-in');
  await signIn(phone, tokens.olga);
  await fits(phone, 'phone-list');
  for (const name of ['many', 'hostile', 'expired', 'contested']) {
    await phone.goto(runPage(runs[name]));
    await fits(phone, `phone-${name}`);
  }
  done('phone');

  await olga.getByRole('button', { name: 'Sign out' }).click();
  assert.equal(await heading(olga), 'Sign in');
  await olga.goto(runPage(runs.many));
  assert.equal(await heading(olga), 'Sign in');
  for (const page of [olga, otto, phone]) {
    const problems = page.problems.filter((problem) => !/status of (403|409|410)/.test(problem));
    assert.deepEqual(problems, []);
  }
  done('signed out');
}

// Checks that a page fits the width of the screen, and that a thumb hits its controls.
async function fits(page, name) {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${name} is ${width} px wide`);
  for (const control of await page.locator('button:visible, input:visible, summary:visible').all()) {
    const { height } = await control.boundingBox();
    assert.ok(height >= 44, `${name}: a control is ${height} px high`);
  }
  await picture(page, name);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
