// Blocks: headings, lists, fenced code, paragraphs.
import { escape, inline } from "./inline.mjs";

export function render(source) {
	const out = [];
	const lines = source.split("\n");
	let i = 0;

	while (i < lines.length) {
		const heading = /^(#{1,6}) (.*)$/.exec(lines[i]);
		if (lines[i].startsWith("```")) {
			const code = [];
			for (i++; i < lines.length && !lines[i].startsWith("```"); i++) {
				code.push(lines[i]);
			}
			i++;
			out.push(`<pre><code>${escape(code.join("\n"))}</code></pre>`);
		} else if (heading) {
			const level = heading[1].length;
			out.push(`<h${level}>${inline(heading[2])}</h${level}>`);
			i++;
		} else if (lines[i].startsWith("- ")) {
			const items = [];
			for (; i < lines.length && lines[i].startsWith("- "); i++) {
				items.push(`<li>${inline(lines[i].slice(2))}</li>`);
			}
			out.push(`<ul>\n${items.join("\n")}\n</ul>`);
		} else if (lines[i].trim() === "") {
			i++;
		} else {
			const text = [];
			for (; i < lines.length && lines[i].trim() !== "" && !/^(```|- |#{1,6} )/.test(lines[i]); i++) {
				text.push(lines[i]);
			}
			out.push(`<p>${inline(text.join("\n"))}</p>`);
		}
	}
	return out.join("\n") + "\n";
}
