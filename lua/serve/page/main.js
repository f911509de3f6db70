// Opens the page: asks the server what it is and the user for its key if it requires one, and opens the views.
import { openChat } from "./chat.js";
import { byId, tell } from "./dom.js";
import { openPlayground } from "./playground.js";
import { get, isReady, key, whenKeyIsNeeded } from "./server.js";

const views = ["chat", "playground"];

function showView() {
  const named = location.hash.slice(1).split("=")[0], view = views.includes(named) ? named : views[0];
  for (const name of views) {
    byId(name).hidden = name !== view;
    if (name === view) byId("to-" + name).setAttribute("aria-current", "page");
    else byId("to-" + name).removeAttribute("aria-current");
  }
  document.title = view === "chat" ? "dtrun" : "dtrun: playground";
}

let asking = null; // one question at a time
function askForKey() {
  tell(byId("key-error"), key.get() ? "The server refused this key." : "");
  byId("key-text").value = "";
  byId("key").returnValue = "";
  byId("key").showModal();
  asking ||= new Promise(done => {
    byId("key").onclose = () => {
      asking = null;
      key.set(byId("key").returnValue && byId("key-text").value);
      byId("key-text").value = "";
      done(!!key.get());
    };
  });
  return asking;
}

// Until the page is open, a line says what it is waiting for.
async function open() {
  const waits = byId("waits-for"), model = byId("model");
  byId("again").hidden = true;
  try {
    for (let wait = 300; !await isReady(); wait = Math.min(2000, 2 * wait)) {
      waits.textContent = "The model is loading.";
      await new Promise(done => setTimeout(done, wait));
    }
    const props = await get("/props"), about = {
      chat: !!props.chat_template,
      model: props.model_alias,
      policy: props.dtrun.policy,
      hasDraft: props.dtrun.draft,
      context: props.default_generation_settings.n_ctx,
    };
    model.textContent = about.model;
    model.title = `${props.dtrun.backend}, ${props.dtrun.threads} threads, context ${about.context}, ${props.total_slots} texts at once`;
    for (const view of views) byId(view).inert = false;
    await openChat(about);
    await openPlayground(about);
    byId("waits").hidden = true;
    document.body.classList.add("open");
  } catch (error) {
    waits.textContent = error.status === 401 ? "This server requires a key." : error.message;
    byId("again").hidden = false;
  }
}

byId("again").onclick = open;
byId("no-key").onclick = () => byId("key").close("");
whenKeyIsNeeded(askForKey);
addEventListener("hashchange", showView);
showView();
open();
