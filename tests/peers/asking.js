// The TypeScript SDK as a client of lispbox whose user answers questions about calls.
// Arguments: the folder of the peers, the revision (`2026-07-28` has the package `@modelcontextprotocol/client`,
// `2025-11-25` has `@modelcontextprotocol/sdk`), and the URL of a server or a command that starts one.
// In the environment, CALLS is a list of arguments of `lisp_eval`, and ANSWERS a list of pairs: a text in a question, and
// the answer to it. Without ANSWERS, the client does not declare that it shows forms.
// Prints a JSON object with the revision, the questions, the messages that were sent, and the results of the calls.
const path = require("path");

const [folder, revision, ...target] = process.argv.slice(2);
const load = (name) => require(path.join(folder, "node_modules", name));
const answers = process.env.ANSWERS && JSON.parse(process.env.ANSWERS);
const isNew = revision === "2026-07-28";

function parts() {
  if (isNew) {
    const { Client, StreamableHTTPClientTransport } = load("mcp-client");
    const { StdioClientTransport } = load("mcp-client/dist/stdio.cjs");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport, question: "elicitation/create" };
  }
  const sdk = (name) => load(`@modelcontextprotocol/sdk/dist/cjs/${name}.js`);
  return {
    Client: sdk("client/index").Client,
    StreamableHTTPClientTransport: sdk("client/streamableHttp").StreamableHTTPClientTransport,
    StdioClientTransport: sdk("client/stdio").StdioClientTransport,
    question: sdk("types").ElicitRequestSchema,
  };
}

async function main() {
  const { Client, StreamableHTTPClientTransport, StdioClientTransport, question } = parts();
  const client = new Client({ name: "test", version: "1" }, {
    capabilities: answers ? { elicitation: { form: {} } } : {},
    versionNegotiation: isNew ? { mode: { pin: revision } } : undefined,
  });
  const asked = [];
  if (answers) {
    client.setRequestHandler(question, async (request) => {
      asked.push(request.params.message);
      const [, answer] = answers.find(([text]) => request.params.message.includes(text));
      return answer;
    });
  }
  const [command, ...args] = target;
  const transport = command.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(command))
    : new StdioClientTransport({ command, args, env: { ...process.env }, stderr: "ignore" });
  const sent = [];
  let negotiated;
  transport.setProtocolVersion = ((set) => (version) => {
    negotiated = version;
    set?.call(transport, version);
  })(transport.setProtocolVersion);
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    sent.push(message.method ?? "answer");
    return send(message, ...rest);
  };
  await client.connect(transport);
  const results = [];
  for (const call of JSON.parse(process.env.CALLS)) {
    const result = await client.callTool({ name: "lisp_eval", arguments: call });
    results.push({ text: result.content[0].text, isError: Boolean(result.isError) });
  }
  await client.close();
  console.log(JSON.stringify({ revision: negotiated, asked, sent, results }));
}

main().then(() => process.exit(0));
