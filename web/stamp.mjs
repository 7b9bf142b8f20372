// Says beside the built page which sources it was built from; a test compares that with the sources.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const files = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts"];
for (const entry of readdirSync("src", { recursive: true, withFileTypes: true })) {
  if (entry.isFile()) files.push(join(entry.parentPath, entry.name));
}
const digest = createHash("sha256");
for (const file of files.sort()) {
  digest.update(`${file}\0`);
  digest.update(readFileSync(file));
}
writeFileSync("../python/ascar/web/page/sources.sha256", `${digest.digest("hex")}\n`);
