// Tests a signed verification in the reader's browser: Ed25519 by WebCrypto, over RFC 8785 JSON, with the published keys.
const place = document.querySelector("[data-check]");
const field = document.getElementById("signed");
const METRICS = ["revenue30d", "mrr", "subscribers"];

class Outcome extends Error {}

// RFC 8785: members sorted by UTF-16 units, no blanks. Our documents hold no numbers but whole ones.
function canonical(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

const written = (value) => new TextEncoder().encode(canonical(value));
const raw = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

async function publishedKeys() {
  try {
    const answer = await fetch(place.dataset.keys, { credentials: "omit" });
    if (!answer.ok) throw new Outcome("unreachable");
    return (await answer.json()).keys;
  } catch {
    throw new Outcome("unreachable");
  }
}

async function imported(jwk) {
  try {
    const { kty, crv, x } = jwk;
    return await crypto.subtle.importKey("jwk", { kty, crv, x }, { name: "Ed25519" }, false, ["verify"]);
  } catch {
    throw new Outcome("unsupported");
  }
}

function parsed(text) {
  try {
    const given = JSON.parse(text);
    const { document, opening } = given.document ? given : { document: given, opening: null };
    const { signature, ...verification } = document;
    const { keyId, listing, signedAt, value } = signature;
    if (![keyId, listing, signedAt, value].every((one) => typeof one === "string")) throw new Outcome("unreadable");
    return { verification, signature, opening, bytes: raw(value) };
  } catch {
    throw new Outcome("unreadable");
  }
}

async function requireSignature({ verification, signature, bytes }) {
  if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) throw new Outcome("unsupported");
  const jwk = (await publishedKeys()).find((one) => one.kid === signature.keyId);
  if (!jwk) throw new Outcome("unknown-key");
  const { keyId, listing, signedAt } = signature;
  const signed = written({ keyId, listing, signedAt, verification });
  if (!(await crypto.subtle.verify("Ed25519", await imported(jwk), bytes, signed))) throw new Outcome("wrong");
  if (listing !== place.dataset.listing) throw new Outcome("another-listing");
}

const inside = (range, value) => Number.isInteger(value) && range.from <= value && value < range.below;

// What an opening must be: of the same listing and sync, bound by the commitment, each number where it is said to be.
async function isOpening(opening, verification, signature) {
  const hashed = new Uint8Array(await crypto.subtle.digest("SHA-256", written(opening)));
  const same = ["source", "definition", "windowEnd", "currency"].every((name) => opening[name] === verification[name]);
  return (
    same &&
    opening.listing === signature.listing &&
    base64url(hashed) === verification.commitment &&
    METRICS.every((name) => {
      const range = verification.ranges[name];
      if (range) return inside(range, opening[name]);
      return verification[name] === null || verification[name] === opening[name];
    })
  );
}

function show(...names) {
  for (const one of place.querySelectorAll("[data-outcome]")) one.hidden = !names.includes(one.dataset.outcome);
}

function tell({ verification, signature }) {
  const facts = { ...signature, definition: verification.definition, syncedAt: verification.syncedAt ?? "–" };
  for (const one of place.querySelectorAll("[data-fact]")) one.textContent = facts[one.dataset.fact];
  place.querySelector("[data-facts]").hidden = false;
}

function list(opening, verification) {
  const rows = place.querySelector("[data-rows]");
  const words = rows.dataset;
  rows.replaceChildren(
    ...METRICS.filter((name) => opening[name] !== null).map((name) => {
      const range = verification.ranges[name];
      const hidden = verification[name] === null ? words.hiddenOne : words.open;
      const said = range ? (inside(range, opening[name]) ? words.yes : words.no) : hidden;
      const row = document.createElement("tr");
      const title = document.createElement("th");
      title.scope = "row";
      title.textContent = words[name];
      const [place_, amount] = [document.createElement("td"), document.createElement("td")];
      Object.assign(place_, { textContent: said }).dataset.label = words.range;
      Object.assign(amount, { textContent: opening[name], className: "amount" }).dataset.label = words.exact;
      row.append(title, place_, amount);
      return row;
    }),
  );
  place.querySelector("[data-opening]").hidden = false;
}

async function check() {
  place.querySelector("[data-facts]").hidden = true;
  place.querySelector("[data-opening]").hidden = true;
  try {
    const given = parsed(field.value);
    await requireSignature(given);
    tell(given);
    const { opening, verification, signature } = given;
    if (!opening) return show("right", ...(verification.syncedAt ? [] : ["no-numbers"]));
    const isRight = await isOpening(opening, verification, signature);
    if (isRight) list(opening, verification);
    show("right", isRight ? "opened" : "not-opened");
  } catch (error) {
    show(error instanceof Outcome ? error.message : "unreadable");
  }
}

document.querySelector("[data-form]").addEventListener("submit", (event) => {
  event.preventDefault();
  check();
});
check();
