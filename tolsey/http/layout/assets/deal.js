// A file goes to the data room as it is, in one request of its own. The form may be another one meanwhile: the page follows.
document.addEventListener("submit", async event => {
  const form = event.target.closest("[data-sends]");
  if (!form) return;
  event.preventDefault();
  const said = form.querySelector("[role=status]");
  const file = form.querySelector("[type=file]").files[0];
  const asked = new URLSearchParams({name: file.name});
  for (const field of form.querySelectorAll("select")) asked.set(field.name, field.value);
  said.textContent = form.dataset.sending;
  try {
    const answer = await fetch(`${form.dataset.sends}?${asked}`, {
      method: "POST", body: file, headers: {"Content-Type": file.type || "application/octet-stream"},
    });
    if (answer.ok) return location.reload();
    said.textContent = (await answer.json()).detail;
  } catch {
    said.textContent = form.dataset.failed;
  }
});
