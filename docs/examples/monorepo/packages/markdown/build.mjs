// Joins the modules of src/ into one file without imports: dist/markdown.mjs.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const parts = ["src/inline.mjs", "src/block.mjs"].map((file) =>
	readFileSync(file, "utf8")
		.split("\n")
		.filter((line) => !line.startsWith("import "))
		.join("\n")
		.trim(),
);
mkdirSync("dist", { recursive: true });
writeFileSync("dist/markdown.mjs", parts.join("\n\n") + "\n");
console.log(`dist/markdown.mjs: ${parts.length} modules`);
