// What every client does at a store: be let in, list the tools, call each, and write down what came of it.
// usage: node <client>.mjs ADDRESS CALLS REPORT
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const [address, calls, report] = process.argv.slice(2);

/** Listens where the browser is sent back to; `arrived` has the parameters it brings. */
export async function callback() {
  let arrive;
  const arrived = new Promise((resolve) => { arrive = resolve; });
  const server = createServer((request, response) => {
    arrive(new URL(request.url, "http://127.0.0.1").searchParams);
    response.end("You can close this window.");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/callback`, arrived };
}

/** Remembers one server's client, tokens and verifier, as an application does; says aloud where its user is to go. */
export function provider(url, name) {
  const kept = {};
  return {
    redirectUrl: url,
    clientMetadata: { client_name: name, redirect_uris: [url] },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    redirectToAuthorization: (asked) => { console.log(String(asked)); },
  };
}

/** Lists the tools and calls each of which it is said how; `call` answers a tool's result. */
export async function travel(version, names, call) {
  const wanted = JSON.parse(readFileSync(calls, "utf8"));
  const answers = {};
  for (const name of names.filter((one) => one in wanted)) answers[name] = await trouble(name, wanted[name], call);
  writeFileSync(report, JSON.stringify({ version, tools: names, answers }));
  process.exit(0);
}

/** Says what went wrong with a call; nothing when it went well. A change that was planned is made, too. */
async function trouble(name, given, call) {
  try {
    const { isError, content } = await call(name, given);
    const [{ text }] = content;
    if (isError) return text;
    const plan = given.dry_run && JSON.parse(text).plan_token;
    return plan ? await trouble(name, { ...given, dry_run: false, plan_token: plan }, call) : null;
  } catch (error) {
    return String(error);
  }
}

/** Reads the version of an installed package. */
export function versionOf(name) {
  const packaged = new URL(`file://${process.cwd()}/node_modules/${name}/package.json`);
  return JSON.parse(readFileSync(packaged, "utf8")).version;
}

export { address };
