// Elements, with text always as text: nothing that was measured, or dropped, is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

type Attributes = Readonly<Record<string, string | number | boolean | null>>;

export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

export function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

const NAMED = "button, select, input, summary, [tabindex]";

/** New content in a place; what had the focus has it again, found by its name. */
export function replace(place: HTMLElement, ...content: Node[]): void {
  const held = place.contains(document.activeElement) ? nameOf(document.activeElement!) : "";
  place.replaceChildren(...content);
  if (held === "") return;
  for (const one of place.querySelectorAll<HTMLElement>(NAMED)) if (nameOf(one) === held) return one.focus();
}

function nameOf(element: Element): string {
  return element.getAttribute("aria-label") ?? `${element.tagName} ${element.textContent}`;
}

/** The element of that id, which the page has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

export function button(text: string, title: string, act: () => void, kind = ""): HTMLButtonElement {
  const made = html("button", { type: "button", title, class: kind }, text);
  made.addEventListener("click", act);
  return made;
}

/** A choice between options; `act` gets the chosen one's value. */
export function choice(
  label: string,
  options: readonly (readonly [string, string])[],
  chosen: string,
  act: (value: string) => void,
): HTMLLabelElement {
  const select = html("select", { "aria-label": label });
  for (const [value, text] of options) select.append(html("option", { value, selected: value === chosen }, text));
  select.addEventListener("change", () => act(select.value));
  return html("label", { class: "choice" }, html("span", {}, label), select);
}

/** Let the browser save a file. */
export function save(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
