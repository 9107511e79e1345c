import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { address, travel, versionOf } from "./journey.mjs";

const args = ["node_modules/mcp-remote/dist/proxy.js", address];
const transport = new StdioClientTransport({ command: process.execPath, args, env: process.env });
const client = new Client({ name: "of-mcp-remote", version: "1" });
await client.connect(transport);
const names = (await client.listTools()).tools.map((one) => one.name);
await travel(versionOf("mcp-remote"), names, (name, args) => client.callTool({ name, arguments: args }));
