// Files that are dropped anywhere on the page.

import { byId } from "../dom";

export function acceptDrops(take: (file: File) => void): void {
  const sign = byId("drop");
  let depth = 0;
  const carries = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  document.addEventListener("dragenter", (event) => {
    if (!carries(event)) return;
    depth++;
    sign.hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!carries(event)) return;
    depth = Math.max(0, depth - 1);
    sign.hidden = depth === 0;
  });
  document.addEventListener("dragover", (event) => {
    if (carries(event)) event.preventDefault();
  });
  document.addEventListener("drop", (event) => {
    depth = 0;
    sign.hidden = true;
    if (!carries(event)) return;
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (file !== undefined) take(file);
  });
}
