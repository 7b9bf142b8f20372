// The page's beginning: fetch what there is, show it, and keep it in step with the address.

import "./style.css";

import { App } from "./app";
import { byId } from "./dom";

const app = new App();

app.start().catch((error: unknown) => {
  const problem = byId("problem");
  problem.textContent = error instanceof Error ? error.message : String(error);
  problem.hidden = false;
});
