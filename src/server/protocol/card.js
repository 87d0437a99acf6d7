// The script of the card: JSON-RPC with the client that shows it, by messages (MCP Apps).
'use strict';

const FIELD = 'lispbox/card';
const main = document.getElementById('card');
const answers = new Map();
let count = 0;
let card = {};
let host = {};

const send = (message) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');

function request(method, params) {
  count += 1;
  send({ id: count, method, params });
  return new Promise((resolve, reject) => answers.set(count, { resolve, reject }));
}

window.addEventListener('message', ({ source, data }) => {
  if (source !== window.parent || data?.jsonrpc !== '2.0') return;
  const { id, method, params, result, error } = data;
  if (method === undefined) {
    const answer = answers.get(id);
    answers.delete(id);
    if (error) answer?.reject(new Error(String(error.message)));
    else answer?.resolve(result);
  } else if (method === 'ui/notifications/tool-result') {
    receive(params);
  } else if (method === 'ui/notifications/tool-cancelled') {
    say('The call was cancelled. Ask for the card again.');
  } else if (method === 'ui/notifications/host-context-changed') {
    dress(params);
  } else if (id !== undefined) {
    const known = method === 'ui/resource-teardown' || method === 'ping';
    send(known ? { id, result: {} } : { id, error: { code: -32601, message: 'method not found' } });
  }
});

// Light or dark as the client is, whatever the system says.
function dress(context) {
  if (context?.theme) document.documentElement.dataset.theme = context.theme;
}

function say(text) {
  const problem = document.createElement('p');
  problem.className = 'problem';
  problem.setAttribute('role', 'alert');
  problem.textContent = text;
  main.replaceChildren(problem);
}

// Shows the content of a reply. All of it is written by lispbox, and what is from programs and servers is escaped in it.
function receive(result) {
  card = result?._meta?.[FIELD] ?? {};
  if (typeof card.html !== 'string') {
    say('This client does not pass on what the card needs. Decide in another way: lispbox approvals open');
    return;
  }
  main.innerHTML = card.html;
  if (card.decided && host.message) {
    const button = document.createElement('button');
    button.className = 'primary';
    button.id = 'go-on';
    button.textContent = 'Go on with the program';
    main.firstElementChild.after(button);
  }
  // A second click that was meant for the button before decides on nothing.
  enable(false);
  setTimeout(enable, 400, true);
}

function enable(enabled) {
  for (const button of main.querySelectorAll('button')) button.disabled = !enabled;
}

async function decide(button) {
  const { form } = button;
  if (!form.reportValidity()) return;
  const fields = Object.fromEntries(new FormData(form));
  fields[button.name] = button.value;
  enable(false);
  try {
    const given = { secret: card.secret, form: fields };
    receive(await request('tools/call', { name: 'lisp_decide', arguments: given }));
    const title = main.querySelector('h1');
    title?.setAttribute('tabindex', '-1');
    title?.focus({ preventScroll: true });
  } catch (problem) {
    say(`It is not known whether the decision was recorded (${problem.message}). Ask for the card again.`);
  }
}

async function goOn(button) {
  button.disabled = true;
  const text = `I have decided. Continue with {"run": "${card.run}"} in lisp_eval.`;
  await request('ui/message', { role: 'user', content: [{ type: 'text', text }] }).catch(() => enable(true));
}

// Clients need not allow forms to be sent, so that the buttons do it.
main.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  event.preventDefault();
  if (button.id === 'go-on') goOn(button);
  else if (button.form) decide(button);
});
main.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.isComposing || !event.target.matches('input[type="text"]')) return;
  event.preventDefault();
  const button = event.target.form.querySelector('button');
  if (!button.disabled) decide(button);
});

new ResizeObserver(() => {
  const { width, height } = document.documentElement.getBoundingClientRect();
  send({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } });
}).observe(document.documentElement);

const hello = { appInfo: { name: 'lispbox', version: '1' }, appCapabilities: {}, protocolVersion: '2026-01-26' };
request('ui/initialize', hello).then(
  (answer) => {
    host = answer.hostCapabilities ?? {};
    dress(answer.hostContext);
    send({ method: 'ui/notifications/initialized' });
  },
  (problem) => say(problem.message),
);
