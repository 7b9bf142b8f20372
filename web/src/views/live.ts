// What goes on: a running study, or a session of online tuning, as the server tells it.

import { html, replace } from "../dom";
import { type Run, runParts } from "./run";
import { type Session, sessionParts } from "./session";

const SILENT = "The server does not answer; trying again.";
const REFUSED = "The server was started anew; open the address that it printed.";

interface Told {
  readonly version?: number;
  readonly run?: Run | null;
  readonly session?: Session;
}

export class LiveView {
  private source: EventSource | null = null;
  private version = -1;
  /** Whether it is a session that is shown: there is nothing else to see. */
  watching = false;

  constructor(
    private readonly place: HTMLElement,
    private readonly renewed: (version: number) => void,
    private readonly named: (name: string) => void,
  ) {}

  /** From now on; a lost connection is taken up again by the browser. */
  listen(): void {
    this.source = new EventSource("api/events");
    this.source.addEventListener("standing", (event) => this.heard(JSON.parse((event as MessageEvent<string>).data) as Told));
    this.source.addEventListener("error", () => this.lost());
  }

  leave(): void {
    this.source?.close();
    this.place.hidden = true;
  }

  /** The browser tries again, unless it was refused: by a server that was started anew, with another token. */
  private lost(): void {
    this.place.classList.add("lost");
    const gone = this.place.querySelector(".gone");
    if (this.source?.readyState === EventSource.CLOSED && gone !== null) gone.textContent = REFUSED;
  }

  private heard(told: Told): void {
    this.place.classList.remove("lost");
    if (told.session !== undefined) {
      this.watching = true;
      this.named(told.session.session);
      this.draw("session", sessionParts(told.session));
      return;
    }
    if (told.run === undefined || told.run === null) {
      if (told.version === 0) this.leave();
      return;
    }
    this.draw("run", runParts(told.run));
    if (told.version !== undefined && told.version !== this.version) {
      const first = this.version === -1;
      this.version = told.version;
      if (!first || told.version > 0) this.renewed(told.version);
    }
  }

  private draw(kind: "run" | "session", parts: Node[]): void {
    this.place.hidden = false;
    this.place.dataset["kind"] = kind;
    replace(this.place, html("p", { class: "gone" }, SILENT), ...parts);
  }
}
