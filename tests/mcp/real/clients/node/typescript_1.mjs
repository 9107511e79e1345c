import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { address, callback, provider, travel, versionOf } from "./journey.mjs";

const home = await callback();
const authProvider = provider(home.url, "TypeScript SDK 1.x");

async function connected() {
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  const client = new Client({ name: "typescript-1", version: "1" });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth((await home.arrived).get("code"));
    return connected();
  }
  return client;
}

const client = await connected();
const names = (await client.listTools()).tools.map((one) => one.name);
await travel(versionOf("@modelcontextprotocol/sdk"), names, (name, args) => client.callTool({ name, arguments: args }));
