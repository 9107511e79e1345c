// What pages gain from a script; each reads without.

// Times are told in the zone that this says; without it they are in UTC, and say so.
const zone = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
if (!document.cookie.split("; ").includes(zone)) {
  const kept = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${zone}; path=/; max-age=31536000; samesite=lax${kept}`;
}

// A table is walked with j and k, opened with Enter; / goes to what finds.
const rows = [...document.querySelectorAll("main tbody tr, main .rows > li")];
let at = -1;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "/") {
    const find = document.querySelector("main input[type=search]");
    if (!find) return;
    event.preventDefault();
    find.focus();
  } else if (event.key === "j" || event.key === "k") {
    at = Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), rows.length - 1);
    rows[at]?.querySelector("a, button")?.focus();
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
