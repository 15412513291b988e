// A page for each article and one that lists them.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { escape, render } from "../markdown/dist/markdown.mjs";

const articles = JSON.parse(readFileSync("../articles/dist/articles.json", "utf8"));
const template = readFileSync("templates/page.html", "utf8");

function page(name, title, body) {
	// Functions, since "$&" in an article must not be read as a pattern.
	const html = template.replace("{{title}}", () => escape(title)).replace("{{body}}", () => body.trim());
	writeFileSync(`dist/${name}.html`, html);
}

mkdirSync("dist", { recursive: true });
copyFileSync("../theme/dist/site.css", "dist/site.css");
for (const { slug, title, date, body } of articles) {
	page(slug, title, `<h1>${escape(title)}</h1>\n<time>${escape(date)}</time>\n${render(body)}<p><a href="index.html">All articles</a></p>`);
}
const list = articles.map(({ slug, title, date }) => `<li><a href="${slug}.html">${escape(title)}</a> <time>${escape(date)}</time></li>`);
page("index", "Notes of an observer", `<h1>Notes of an observer</h1>\n<ul>\n${list.join("\n")}\n</ul>`);
console.log(`${articles.length + 1} pages`);
