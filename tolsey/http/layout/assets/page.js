// What pages gain from a script: texts that are copied with a button. Without it they are marked by hand.
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
