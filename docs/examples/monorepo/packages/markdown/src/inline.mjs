// Text inside a block: code, links, emphasis. Everything else is escaped.
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

export function escape(text) {
	return text.replace(/[&<>"]/g, (c) => escapes[c]);
}

// Code comes first and is set aside, so that nothing inside it is read as markup.
export function inline(text) {
	return text
		.split(/(`[^`]+`)/)
		.map((part) => {
			if (/^`[^`]+`$/.test(part)) {
				return `<code>${escape(part.slice(1, -1))}</code>`;
			}
			return escape(part)
				.replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, '<a href="$2">$1</a>')
				.replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>")
				.replace(/\*([^*]+)\*/g, "<em>$1</em>");
		})
		.join("");
}
