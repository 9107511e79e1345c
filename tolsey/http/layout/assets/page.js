// What pages gain from a script; each reads without.

// Times are told in the zone that this says; without it they are in UTC, and say so.
const zone = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
if (!document.cookie.split("; ").includes(zone)) {
  const kept = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${zone}; path=/; max-age=31536000; samesite=lax${kept}`;
}

// A table is walked with j and k, a row picked with x and opened with Enter; / goes to what finds, ? says all this.
const ROWS = "main tbody tr, main .rows > li";
const help = document.getElementById("keys");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest(ROWS);
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  if (typing || document.querySelector("dialog[open]")) return;
  if (event.key === "/") {
    const find = document.querySelector("main input[type=search]");
    if (!find) return;
    event.preventDefault();
    find.focus();
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll(ROWS)].filter((one) => one.querySelector("a, button"));
    const at = rows.indexOf(row) + (event.key === "j" ? 1 : row ? -1 : 0);
    rows[Math.min(Math.max(at, 0), rows.length - 1)]?.querySelector("a, button").focus();
  } else if (event.key === "x") {
    row?.querySelector("input[type=checkbox]")?.click();
  } else if (event.key === "?") {
    event.preventDefault();
    help.showModal();
  }
});

// Texts that are copied with a button. Without it they are marked by hand.
for (const button of document.querySelectorAll("[data-copies]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copies);
    const said = button.nextElementSibling;
    try {
      await navigator.clipboard.writeText(field.value);
      said.textContent = said.dataset.said;
    } catch {
      field.select();
    }
  });
}
