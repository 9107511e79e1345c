// The TypeScript SDK's server on Node's own HTTP server, one factory call for each request, as its
// documents show: `node server.mjs PORT FOLDER`, its packages in FOLDER, its tokens in PEER_TOKENS.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [port, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer, createMcpHandler } = await load('@modelcontextprotocol/server');
const { toNodeHandler, localhostHostValidation, localhostOriginValidation } = await load(
    '@modelcontextprotocol/node',
);
const z = await load('zod');

const admitted = new Set(JSON.parse(process.env.PEER_TOKENS).map(fingerprint));

function fingerprint(token) {
    return createHash('sha256').update(token).digest('hex');
}

const Money = z.object({ amount: z.string(), currency: z.string() });
const OrderDetail = z.object({
    id: z.string(),
    name: z.string().optional(),
    processed_at: z.string().optional(),
    total: Money.optional(),
    current_total: Money.optional(),
    financial_status: z.string().optional(),
    fulfillment_status: z.string().optional(),
    source: z.string().optional(),
    customer: z.string().optional(),
    test: z.boolean(),
    cancelled_at: z.string().optional(),
    updated_at: z.string(),
    refunds: z.array(
        z.object({ id: z.string(), amount: Money.optional(), processed_at: z.string().optional() }),
    ),
    parcels: z.array(
        z.object({
            id: z.string(),
            status: z.string().optional(),
            shipment_status: z.string().optional(),
            carrier: z.string().optional(),
            updated_at: z.string(),
        }),
    ),
});
const OrderId = z.object({ order_id: z.string().min(1).max(64) });
const AT = '2026-11-20T10:00:00Z';

function order(id) {
    return {
        id,
        name: '#1001',
        processed_at: AT,
        total: { amount: '129.90', currency: 'EUR' },
        current_total: { amount: '99.90', currency: 'EUR' },
        financial_status: 'partially_refunded',
        fulfillment_status: 'fulfilled',
        source: 'web',
        customer: `s1:${'0f'.repeat(32)}`,
        test: false,
        updated_at: AT,
        refunds: [{ id: '1', amount: { amount: '30.00', currency: 'EUR' }, processed_at: AT }],
        parcels: [
            { id: '1', status: 'success', shipment_status: 'delivered', carrier: 'DHL', updated_at: AT },
        ],
    };
}

function server() {
    const made = new McpServer({ name: 'peer', version: '1' });
    made.registerTool(
        'get_order',
        {
            title: 'Get an order',
            description: 'Reads one order with its refunds and parcels.',
            inputSchema: OrderId,
            outputSchema: OrderDetail,
        },
        async ({ order_id }) => {
            const found = order(order_id);
            return { content: [{ type: 'text', text: JSON.stringify(found) }], structuredContent: found };
        },
    );
    return made;
}

const handle = toNodeHandler(createMcpHandler(server, { responseMode: 'json' }));
const validateHost = localhostHostValidation();
const validateOrigin = localhostOriginValidation();

createServer((request, response) => {
    if (!validateHost(request, response) || !validateOrigin(request, response)) return;
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (scheme !== 'Bearer' || !admitted.has(fingerprint(token ?? ''))) {
        response.writeHead(401).end();
        return;
    }
    void handle(request, response);
}).listen(Number(port), '127.0.0.1');
