// What a form gains from a script that is checked while it is typed in: what the page says of it is renewed. What was
// typed stays as it is, and is sent nowhere but to us. Without the script it is checked when it is sent.
const PAUSE = 500;
const ofField = (page, name) => page.getElementById(`${name}-error`) ?? page.getElementById(`${name}-hint`);

for (const form of document.querySelectorAll("[data-checks]")) {
  let [timer, asked] = [0, null];
  const show = (page) => {
    for (const part of document.querySelectorAll("[data-checked]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && !fresh.isEqualNode(part)) part.replaceWith(document.adoptNode(fresh));
    }
    for (const input of form.querySelectorAll("input:not([type=hidden])")) {
      const [now, fresh] = [ofField(document, input.name), ofField(page, input.name)];
      const checked = page.getElementById(input.id);
      if (!checked) continue;
      if (now && fresh) now.replaceWith(document.adoptNode(fresh));
      else if (fresh) input.after(document.adoptNode(fresh));
      else now?.remove();
      for (const name of ["aria-invalid", "aria-describedby"])
        checked.hasAttribute(name) ? input.setAttribute(name, checked.getAttribute(name)) : input.removeAttribute(name);
    }
  };
  const check = () => {
    asked?.abort();
    asked = new XMLHttpRequest();
    asked.responseType = "document";
    asked.open("POST", form.dataset.checks);
    asked.setRequestHeader("Content-Type", "application/x-www-form-urlencoded;charset=UTF-8");
    const mine = asked;
    asked.onload = () => mine === asked && mine.status === 200 && mine.response && show(mine.response);
    asked.send(new URLSearchParams(new FormData(form)).toString());
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  });
  form.addEventListener("submit", () => {
    clearTimeout(timer);
    asked?.abort();
  });
}
