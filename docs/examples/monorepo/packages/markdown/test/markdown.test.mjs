// The built file, not the sources: what users get.
import assert from "node:assert/strict";
import { escape, render } from "../dist/markdown.mjs";

const cases = [
	["# One\n\ntwo *three* **four**\n", "<h1>One</h1>\n<p>two <em>three</em> <strong>four</strong></p>\n"],
	["- a\n- b\n", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"],
	["```\n<b> *x*\n```\n", "<pre><code>&lt;b&gt; *x*</code></pre>\n"],
	["`a * b * c` & [d](e.html)\n", '<p><code>a * b * c</code> &amp; <a href="e.html">d</a></p>\n'],
	["one\ntwo\n- three\n", "<p>one\ntwo</p>\n<ul>\n<li>three</li>\n</ul>\n"],
	["", "\n"],
];
for (const [source, html] of cases) {
	assert.equal(render(source), html);
}
assert.equal(escape('<"&">'), "&lt;&quot;&amp;&quot;&gt;");
console.log(`markdown: ${cases.length + 1} cases`);
