import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { address, callback, provider, travel, versionOf } from "./journey.mjs";

const home = await callback();
const authProvider = provider(home.url, "TypeScript SDK 2.x");

async function connected() {
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  const client = new Client({ name: "typescript-2", version: "1" });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await home.arrived);
    return connected();
  }
  return client;
}

const client = await connected();
const names = (await client.listTools()).tools.map((one) => one.name);
await travel(versionOf("@modelcontextprotocol/client"), names, (name, args) => client.callTool({ name, arguments: args }));
