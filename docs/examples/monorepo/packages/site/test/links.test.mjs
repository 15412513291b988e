// Every link of every page leads to a file of the site.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";

const pages = readdirSync("dist").filter((name) => name.endsWith(".html"));
let links = 0;
for (const page of pages) {
	for (const [, target] of readFileSync(`dist/${page}`, "utf8").matchAll(/href="([^"]+)"/g)) {
		assert.ok(existsSync(`dist/${target}`), `${page} links to ${target}, which is not there`);
		links++;
	}
}
assert.ok(pages.includes("index.html"), "there is a front page");
assert.ok(links > pages.length, "pages are linked with one another");
console.log(`site: ${links} links on ${pages.length} pages`);
