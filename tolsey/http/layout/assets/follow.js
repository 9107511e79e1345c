// What a page gains from a script that is told when what it shows moved: it follows by itself. Without it the page is read anew.
const status = document.getElementById("follows");
const [said, show] = [status.querySelector("span"), status.querySelector("a")];

// What somebody is at, or typed into, stays as it is: they are told, and read it anew when they like.
addEventListener("input", (event) => event.target.setAttribute("data-typed", ""));
const inUse = (part) => part.contains(document.activeElement) || part.matches(":hover") || part.querySelector("[data-typed]");

function renew() {
  const request = new XMLHttpRequest();
  request.responseType = "document";
  request.open("GET", location.href);
  request.onload = () => {
    if (request.status !== 200 || !request.response) return;
    let held = false;
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = request.response.getElementById(part.id);
      if (!fresh || fresh.isEqualNode(part)) continue;
      if (inUse(part)) held = true;
      else {
        const open = [...part.querySelectorAll("details")].map((one) => one.open);
        part.replaceWith(document.adoptNode(fresh));
        fresh.querySelectorAll("details").forEach((one, n) => (one.open ||= open[n] ?? false));
      }
    }
    said.textContent = held ? status.dataset.said : "";
    show.hidden = !held;
  };
  request.send();
}

let source = null;
function follow() {
  if (source || document.hidden) return;
  source = new EventSource(status.dataset.follows);
  source.addEventListener("changed", renew);
}
function leave() {
  source?.close();
  source = null;
}
document.addEventListener("visibilitychange", () => (document.hidden ? leave() : (renew(), follow())));
addEventListener("pagehide", leave);
addEventListener("pageshow", follow);
