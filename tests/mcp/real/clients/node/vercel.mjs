import { auth, createMCPClient } from "@ai-sdk/mcp";
import { address, callback, provider, travel, versionOf } from "./journey.mjs";

const home = await callback();
const authProvider = provider(home.url, "Vercel AI SDK");

async function connected() {
  return createMCPClient({ transport: { type: "http", url: address, authProvider } });
}

let client;
try {
  client = await connected();
} catch {
  const came = await home.arrived;
  const told = { authorizationCode: came.get("code"), callbackIssuer: came.get("iss") };
  await auth(authProvider, { serverUrl: address, ...told });
  client = await connected();
}
const tools = await client.tools();
const call = (name, args) => tools[name].execute(args, { toolCallId: name, messages: [] });
await travel(versionOf("@ai-sdk/mcp"), Object.keys(tools), call);
