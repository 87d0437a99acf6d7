// Cuts programs into tokens by the TextMate grammar, as an editor does.
// Arguments: the folder of the peers, and the grammar. Each line of standard input is a program as a JSON string;
// each line of standard output is the list of its tokens, `[text, innermost scope]`, without blank ones.
const fs = require("fs");
const path = require("path");

const [folder, file] = process.argv.slice(2);
const modules = path.join(folder, "node_modules");
const textmate = require(path.join(modules, "vscode-textmate"));
const oniguruma = require(path.join(modules, "vscode-oniguruma"));

async function main() {
  await oniguruma.loadWASM(fs.readFileSync(path.join(modules, "vscode-oniguruma/release/onig.wasm")).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(file, "utf8"), file),
  });
  const grammar = await registry.loadGrammar("source.lispbox");
  for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const found = [];
    let state = textmate.INITIAL;
    for (const text of JSON.parse(line).split("\n")) {
      const result = grammar.tokenizeLine(text, state);
      state = result.ruleStack;
      for (const token of result.tokens) {
        const piece = text.slice(token.startIndex, token.endIndex);
        if (piece.trim()) found.push([piece, token.scopes[token.scopes.length - 1].replace(/\.lispbox$/, "")]);
      }
    }
    console.log(JSON.stringify(found));
  }
}

main();
