// The whole page: one state, and every view drawn from it.

import { scaleLinear } from "d3-scale";

import { Weighing } from "./data/cost";
import { explore, fetchTable, inspect, type Roles, valuesOf } from "./data/server";
import { type Dimension, type Metric, metricNamed, type Table } from "./data/table";
import { byId, replace, save } from "./dom";
import { different } from "./engine/configurations";
import { domain } from "./engine/domain";
import { type Bars, Engine, type Limit } from "./engine/engine";
import { applyText, csvText, drawingText } from "./export";
import { count, many } from "./format";
import { FRESH, fromHash, standing, type Standing, type State, type Step, taken, toHash, type View } from "./state";
import { BarsView, PLOT_RANGE } from "./views/bars";
import { askRoles, showHelp } from "./views/dialogs";
import { acceptDrops } from "./views/drop";
import { drawGoal } from "./views/goal";
import { LiveView } from "./views/live";
import { notes } from "./views/notes";
import { ParallelView } from "./views/parallel";
import { drawPath, type Milestone, stepText } from "./views/path";
import { drawTables } from "./views/tables";
import { tools } from "./views/tools";
import { WholeView } from "./views/whole";

/** All that a drawing needs, once it is there. */
interface Scene {
  readonly table: Table;
  readonly engine: Engine;
  readonly metric: Metric;
  readonly minimize: boolean;
  readonly values: Float64Array;
  readonly standing: Standing;
  readonly chosen: readonly (readonly boolean[] | null)[];
  readonly bars: Bars;
}

export class App {
  private state: State = FRESH;
  private table: Table | null = null;
  private engine: { of: Table; values: Float64Array; made: Engine } | null = null;
  private readonly weighing = new Weighing();
  private readonly milestones = new Map<string, Milestone>();
  /** Constraints that were added but restrict nothing yet. */
  private readonly open = new Set<string>();
  private readonly bars: BarsView;
  private readonly whole: WholeView;
  private readonly parallel: ParallelView;
  private readonly live: LiveView;
  private scene: Scene | null = null;
  private turn = 0;

  constructor() {
    this.bars = new BarsView(byId("bars"), (dimension, code, alone) => this.toggle(dimension, code, alone));
    this.whole = new WholeView(byId("whole"));
    this.parallel = new ParallelView(byId("parallel"), (dimension, code) => this.toggle(dimension, code, false));
    this.live = new LiveView(byId("live"), (version) => void this.renewed(version), (name) => {
      byId("name").textContent = `session ${name}`;
      document.title = `${name} · ascar`;
      document.body.classList.add("watching");
    });
  }

  async start(): Promise<void> {
    this.state = fromHash(location.hash);
    window.addEventListener("popstate", () => this.restored());
    window.addEventListener("hashchange", () => this.restored());
    document.addEventListener("keydown", (event) => this.keyed(event));
    acceptDrops((file) => void this.dropped(file));
    this.drawTools();
    this.live.listen();
    try {
      await this.refetch();
    } catch (error) {
      this.fail(error);
    }
  }

  /** What the server has now. */
  private async refetch(): Promise<void> {
    const table = await fetchTable();
    if (table !== null) await this.show(table);
    else if (!this.live.watching) byId("name").textContent = "nothing to compare yet";
  }

  // What changes the state.

  private step(step: Step): void {
    this.become(taken(this.state, step), true);
  }

  private go(at: number): void {
    this.become({ ...this.state, at: Math.max(0, Math.min(this.state.steps.length, at)) }, true);
  }

  private view(view: Partial<View>): void {
    this.become({ ...this.state, view: { ...this.state.view, ...view } }, false);
  }

  private become(state: State, remember: boolean): void {
    this.state = state;
    const address = `${location.pathname}${location.search}${toHash(state)}`;
    if (remember) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    void this.draw();
  }

  private restored(): void {
    this.state = fromHash(location.hash);
    this.drawTools();
    void this.draw();
  }

  /** A value is added to the chosen ones or taken from them; `alone`: it is the only one. */
  private toggle(dimension: Dimension, code: number, alone: boolean): void {
    const label = dimension.labels[code]!;
    const known = standing(this.state).values.get(dimension.name) ?? [];
    const kept = alone ? [] : known.filter((one) => one !== label);
    const labels = known.includes(label) && !(alone && known.length > 1) ? kept : [...kept, label];
    // In the order in which they are shown, whatever the order of clicks.
    const ordered = dimension.labels.filter((one) => labels.includes(one));
    this.step({ kind: "values", dimension: dimension.name, labels: ordered });
  }

  // Drawing.

  private async show(table: Table): Promise<void> {
    this.table = table;
    this.milestones.clear();
    byId("name").textContent = table.name;
    document.title = `${table.name} · ascar`;
    await this.draw();
  }

  /** Everything from the state; a newer call makes an older one that still waits for a column end. */
  private async draw(): Promise<void> {
    const table = this.table;
    if (table === null) return;
    const turn = ++this.turn;
    performance.mark("ascar-begun");
    try {
      const scene = await this.compute(table);
      if (turn !== this.turn) return;
      performance.mark("ascar-computed");
      this.scene = scene;
      this.clear();
      this.paint(scene);
    } catch (error) {
      this.fail(error);
    }
  }

  private async compute(table: Table): Promise<Scene> {
    const now = standing(this.state);
    this.weighing.apply(table, this.state.view.weights);
    const name = now.objective?.metric ?? table.objective;
    const metric = metricNamed(table, name);
    if (metric === undefined) {
      const known = table.metrics.map((one) => one.name);
      throw new Error(
        `objective “${name}”: the table has no such metric; it has ${known.slice(0, 40).join(", ")}. ` +
          "Take that step back, or choose another objective.",
      );
    }
    const values = await valuesOf(metric);
    const limits: Limit[] = [];
    for (const [name, { low, high }] of now.limits) {
      const limited = metricNamed(table, name);
      if (limited !== undefined) limits.push({ values: await valuesOf(limited), low, high });
    }
    if (this.engine === null || this.engine.of !== table || this.engine.values !== values) {
      this.engine = { of: table, values, made: new Engine(table, values) };
    }
    const chosen = table.dimensions.map((dimension) => {
      const labels = now.values.get(dimension.name);
      return labels === undefined ? null : dimension.labels.map((label) => labels.includes(label));
    });
    const engine = this.engine.made;
    const bars = engine.bars({ chosen, limits });
    const minimize = now.objective?.minimize ?? table.minimize;
    return { table, engine, metric, minimize, values, standing: now, chosen, bars };
  }

  private paint(scene: Scene): void {
    const { table, bars, chosen, metric } = scene;
    const { look, sort } = this.state.view;
    byId("bars").hidden = look !== "bars";
    byId("parallel").hidden = look !== "parallel";
    const order = table.dimensions.map((_, which) => which);
    if (sort === "importance") {
      // What is restricted explains nothing more; it comes first, in the order of the path, and stays there.
      const path = [...scene.standing.values.keys()];
      const place = (which: number) => {
        const at = path.indexOf(table.dimensions[which]!.name);
        return at < 0 ? path.length : at;
      };
      order.sort((a, b) => place(a) - place(b) || bars.importance[b]! - bars.importance[a]!);
    }
    const y = scaleLinear(domain(scene, this.state.view.scale), [...PLOT_RANGE]).nice(5).clamp(true);
    if (look === "bars") this.bars.draw({ table, bars, chosen, order, y, objective: metric.name });
    else this.parallel.draw({ ...scene, order });
    this.whole.draw(bars.all, y, scene.engine.order.length);
    const key = JSON.stringify(this.state.steps.slice(0, this.state.at));
    this.milestones.set(key, { rows: bars.all.count, mean: bars.all.mean });
    performance.mark("ascar-drawn");
    document.body.dataset["drawn"] = String(this.turn);
    // The bars are what a click waits for; the rest follows once they are on the screen.
    requestAnimationFrame(() => setTimeout(() => void this.paintRest(scene)));
  }

  private async paintRest(scene: Scene): Promise<void> {
    if (scene !== this.scene) return;
    const { table, bars, chosen, metric, minimize, values } = scene;
    drawPath(
      byId("path"),
      { steps: this.state.steps, at: this.state.at, milestones: this.known() },
      (at) => this.go(at),
    );
    const named = this.state.view.second === metric.name ? undefined : metricNamed(table, this.state.view.second);
    try {
      const second = named === undefined ? null : { name: named.name, values: await valuesOf(named) };
      await this.paintGoal(scene);
      if (scene !== this.scene) return;
      drawTables(
        byId("tables"),
        { table, bars, chosen, metric: metric.name, minimize, values, second, view: this.state.view },
        {
          view: (view) => this.view(view),
          apply: (row) => save("configuration.json", applyText(table, row), "application/json"),
          choose: (dimension, label) => this.step({ kind: "values", dimension, labels: [label] }),
          only: (row) => this.step(configurationOf(table, row)),
        },
      );
    } catch (error) {
      this.fail(error);
      return;
    }
    byId("notes").replaceChildren(...notes(table, scene.engine.order.length, metric.name));
    const left = different(table, bars.rows);
    byId("said").textContent = `${many(bars.all.count, "row")} of ${many(left, "configuration")} left`;
    byId("whole").dataset["configurations"] = `${count(left)} of ${count(table.configurations)} configurations`;
    document.body.dataset["settled"] = String(this.turn);
  }

  private async paintGoal({ table, metric, minimize, standing }: Scene): Promise<void> {
    const names = new Set([...standing.limits.keys(), ...this.open]);
    const constraints = [];
    for (const name of names) {
      const limited = metricNamed(table, name);
      if (limited === undefined) continue;
      const limits = standing.limits.get(name) ?? { low: null, high: null };
      constraints.push({ metric: name, values: await valuesOf(limited), ...limits });
    }
    drawGoal(
      byId("goal"),
      { table, metric: metric.name, minimize, constraints, weights: table.changes && this.state.view.weights },
      {
        weigh: (weights) => this.view({ weights }),
        objective: (name, least) => this.step({ kind: "objective", metric: name, minimize: least }),
        add: (name) => {
          this.open.add(name);
          void this.draw();
        },
        limit: (name, limits) => {
          this.open.add(name);
          this.step({ kind: "limit", metric: name, ...limits });
        },
        remove: (name) => {
          this.open.delete(name);
          if (standing.limits.has(name)) this.step({ kind: "limit", metric: name, low: null, high: null });
          else void this.draw();
        },
      },
    );
  }

  /** What is known to have been left after so many steps. */
  private known(): Map<number, Milestone> {
    const found = new Map<number, Milestone>();
    for (let at = 0; at <= this.state.steps.length; at++) {
      const milestone = this.milestones.get(JSON.stringify(this.state.steps.slice(0, at)));
      if (milestone !== undefined) found.set(at, milestone);
    }
    return found;
  }

  // The rest of the page.

  private drawTools(): void {
    const acts = {
      view: (view: Partial<View>) => this.view(view),
      everything: () => this.step({ kind: "everything" }),
      drawing: () => this.saveDrawing(),
      rows: () => this.saveRows(),
      file: (file: File) => void this.dropped(file),
    };
    replace(byId("tools"), ...tools(this.state.view, acts));
  }

  private saveDrawing(): void {
    if (this.scene === null || this.table === null) return;
    const main = this.state.view.look === "bars" ? this.bars.drawing : this.parallel.drawing;
    const steps = this.state.steps.slice(0, this.state.at).map(stepText);
    const title = [this.table.name, this.scene.metric.name, ...steps].join(" · ");
    const below = byId("tables").querySelector<SVGSVGElement>("svg.scatter");
    const rows = [[main, this.whole.drawing], ...(below === null ? [] : [[below]])];
    save("explore.svg", drawingText(rows, title), "image/svg+xml");
  }

  private saveRows(): void {
    if (this.scene !== null) save("selection.csv", csvText(this.scene.table, this.scene.bars.rows), "text/csv");
  }

  private async dropped(file: File): Promise<void> {
    try {
      const found = await inspect(file);
      await askRoles(found, async (roles: Roles) => {
        const table = await explore(file, roles);
        this.live.leave();
        this.open.clear();
        this.become({ ...FRESH, view: this.state.view }, true);
        await this.show(table);
      });
    } catch (error) {
      this.fail(error);
    }
  }

  /** The run that is watched has new trials. */
  private async renewed(version: number): Promise<void> {
    if (this.table === null || (!this.table.dropped && this.table.version !== version)) {
      try {
        await this.refetch();
      } catch (error) {
        if (this.table !== null) this.fail(error);
      }
    }
  }

  private keyed(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (target.closest("input, select, textarea, dialog") !== null) return;
    const key = event.key.toLowerCase();
    const command = event.ctrlKey || event.metaKey;
    if (command && key === "z") this.go(this.state.at + (event.shiftKey ? 1 : -1));
    else if (command && key === "y") this.go(this.state.at + 1);
    else if (!command && event.key === "Escape") this.step({ kind: "everything" });
    else if (!command && event.key === "?") showHelp();
    else return;
    event.preventDefault();
  }

  private fail(error: unknown): void {
    const problem = byId("problem");
    problem.textContent = error instanceof Error ? error.message : String(error);
    problem.hidden = false;
  }

  private clear(): void {
    byId("problem").hidden = true;
  }
}

/** The step to one row's configuration alone. */
function configurationOf(table: Table, row: number): Step {
  return { kind: "one", labels: table.dimensions.map((one) => [one.name, one.labels[one.codes[row]!]!]) };
}
