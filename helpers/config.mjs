// SPDX-License-Identifier: MIT
//
// Evaluates configs in JavaScript and TypeScript to JSON: bun, deno or node runs this text (src/config/script.c
// holds it and gives it on standard input). File descriptor 4 has what to do: the root, then for each config
// its path from there, all ended by NULs; there is more in it for each byte that comes on descriptor 5, until that ends. On
// descriptor 3 it answers, one JSON array a line, where configs are counted from the byte on:
//
//	["runtime", "node", "22.18.0"]    first
//	["old", "20.1.0"]                 a node that cannot do it; nothing follows
//	["begin", 0]                      from here on config 0 has the process
//	["value", 0, JSON, WHY, NEEDS, MANIFESTS, ANY]
//	                                  WHY ("it mentions process"): "" when nothing but NEEDS and MANIFESTS decides the value, which can
//	                                  then be remembered. NEEDS: files from the root that it rests on, there or
//	                                  not; MANIFESTS: package.json files of which only counts what they say of
//	                                  modules (changes.c knows the fields); ANY: it may have read any file beside
//	["fail", 0, "is a function"]      the end
//	["done"]                          all that was asked
//
// It writes each line at once, so that whatever a config does to the process afterwards, the line before tells
// which one it was. No config is evaluated after one that failed: nothing has to be undone in a process that ends.
import module from "node:module";

// An import of them would load all that they can load.
const builtin = module.createRequire("/vx");
const fs = builtin("fs");
const path = builtin("path");
const url = builtin("url");

const VIRTUAL = ["@vzn/vx", "@vzn/vx/config"];
const TEXT_MAX = 16 << 20; // as JSON_FILE_MAX
const DEPTH_MAX = 100; // below JSON_DEPTH_MAX
const MESSAGE_MAX = 600;
// Of a package's files what is larger, or more in number, is not gone through: it would cost more than it saves.
const PACKAGED_MAX = 256 << 10;
const PACKAGED_FILES_MAX = 200;

// What a config may change is not asked for again after the first one has begun.
const { stringify, parse } = JSON;
const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
const { isArray } = Array;
const { isExtensible, isFrozen } = Object;
const { writeSync, readSync, readFileSync, lstatSync, realpathSync, readlinkSync } = fs;
const exit = process.reallyExit ? process.reallyExit.bind(process) : process.exit.bind(process);
const cwd = process.cwd.bind(process);
const umask = process.umask.bind(process);
const env = process.env;

// bun has these as globals for a program that comes on standard input, and nowhere else.
if (typeof Bun !== "undefined")
	for (const name of module.builtinModules)
		if (!/^(console|crypto|process)$/.test(name))
			delete globalThis[name];

// deno has numbers of its own for descriptors.
const channel = typeof Deno === "undefined" ? 3 : fs.openSync("/proc/self/fd/3", "w");
const rung = new Uint8Array(1);
const bell = typeof Deno === "undefined" ? 5 : fs.openSync("/proc/self/fd/5", "r");

function say(...message) {
	let bytes = Buffer.from(stringify(message) + "\n");

	for (let at = 0; at < bytes.length; )
		at += writeSync(channel, bytes, at);
}

// ---------------------------------------------------------------- what the text of a file tells

// Names of the language that give the same answer each time.
const STEADY = new Set(
	("Object Array String Number Boolean BigInt Symbol JSON Math Map Set WeakMap WeakSet RegExp Promise Error " +
		"AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError parseInt parseFloat " +
		"isNaN isFinite NaN Infinity undefined encodeURI encodeURIComponent decodeURI decodeURIComponent " +
		"structuredClone Iterator name").split(" "),
);
// What a config may not change, and so the names of what it could.
const GUARDED = (
	"Object Function Array String Number Boolean BigInt Symbol RegExp Promise Map Set WeakMap WeakSet WeakRef Date " +
	"Error AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError ArrayBuffer " +
	"SharedArrayBuffer DataView Uint8Array Int8Array Uint16Array Int16Array Uint32Array Int32Array Float32Array " +
	"Float64Array JSON Math Reflect Proxy Intl Atomics URL Buffer Iterator"
).split(" ");
const NAMES_GUARDED = new Set([...GUARDED, "prototype"]);
// All else that is global, whichever runtime it is, and the names that lead there.
const UNSTEADY = new Set(
	[
		...ownKeys(globalThis).filter((name) => typeof name === "string"),
		..."process Deno Bun Date Temporal fetch performance crypto navigator eval Function __dirname __filename".split(" "),
		..."await this arguments debugger".split(" "),
	].filter((name) => !STEADY.has(name)),
);
// The same as a property.
const UNSTEADY_PROPERTIES = new Set(
	("constructor __proto__ random stack caller callee captureStackTrace prepareStackTrace localeCompare " +
		"toLocaleString toLocaleLowerCase toLocaleUpperCase toLocaleDateString toLocaleTimeString").split(" "),
);
// Of all these, what answers otherwise the next time and yet leads to no file.
const BLIND = new Set("Date Temporal performance await random localeCompare toLocaleString toLocaleLowerCase toLocaleUpperCase toLocaleDateString toLocaleTimeString".split(" "));
const BLIND_MODULES = new Set("path path/posix url os util assert".split(" ").map((name) => `node:${name}`));
const KEYWORDS = new Set(
	("return typeof case do else in of instanceof new delete void throw yield await extends default " +
		"if while for with as satisfies").split(" "),
);
// Before a slash that begins a regular expression; after any other but a value it could be either.
const BEFORE_REGEX = "(,=:[&|?{;~%^*";

class Lost extends Error {}

// Words, strings and marks of the text, comments left out. Throws Lost where it cannot tell what is code.
function tokens(text) {
	const found = [];
	const open = []; // "{", or "`" for the "${" of a template
	let at = text.startsWith("#!") ? text.search(/[\n\r]|$/) : 0;

	const lost = (what) => {
		throw new Lost(what);
	};
	const template = () => {
		for (; at < text.length; at++) {
			if (text[at] === "\\") {
				at++;
			} else if (text[at] === "`") {
				at++;
				found.push({ kind: "template" });
				return;
			} else if (text[at] === "$" && text[at + 1] === "{") {
				at += 2;
				open.push("`");
				found.push({ kind: "mark", text: "{" });
				return;
			}
		}
		lost("a template without its end");
	};
	const string = (quote) => {
		const start = at++;

		for (; text[at] !== quote; at++) {
			if (at >= text.length || text[at] === "\n" || text[at] === "\r")
				lost("a string without its end");
			if (text[at] === "\\") {
				at++;
				if (text[at] === "\r" && text[at + 1] === "\n")
					at++;
			}
		}
		at++;
		found.push({ kind: "string", text: text.slice(start + 1, at - 1) });
	};
	const slash = () => {
		const last = found[found.length - 1];

		if (last && (last.kind !== "mark" || last.text === "]")) {
			if (last.kind === "word" && KEYWORDS.has(last.text))
				lost("a slash after a keyword");
			at++;
			found.push({ kind: "mark", text: "/" });
			return;
		}
		if (last && !BEFORE_REGEX.includes(last.text))
			lost("a slash that may begin a regular expression");
		for (let inClass = false; ; ) {
			at++;
			if (at >= text.length || text[at] === "\n" || text[at] === "\r")
				lost("a regular expression without its end");
			if (text[at] === "\\")
				at++;
			else if (text[at] === "[")
				inClass = true;
			else if (text[at] === "]")
				inClass = false;
			else if (text[at] === "/" && !inClass)
				break;
		}
		at++;
		while (/[a-z]/.test(text[at] || ""))
			at++;
		found.push({ kind: "regex" });
	};

	while (at < text.length) {
		const c = text[at];

		if (c === " " || c === "\t" || c === "\n" || c === "\r" || (c === "\ufeff" && !at)) {
			at++;
		} else if (c === "/" && text[at + 1] === "/") {
			while (at < text.length && !/[\n\r\u2028\u2029]/.test(text[at]))
				at++;
		} else if (c === "/" && text[at + 1] === "*") {
			const end = text.indexOf("*/", at + 2);

			if (end < 0)
				lost("a comment without its end");
			at = end + 2;
		} else if (c === "/") {
			slash();
		} else if (c === '"' || c === "'") {
			string(c);
		} else if (c === "`") {
			at++;
			template();
		} else if (/[A-Za-z0-9_$]/.test(c)) {
			const start = at;

			while (/[A-Za-z0-9_$]/.test(text[at] || ""))
				at++;
			found.push({ kind: "word", text: text.slice(start, at) });
		} else if (c === "}" && open.length && open.pop() === "`") {
			at++;
			found.push({ kind: "mark", text: "}" });
			template();
		} else {
			if (c === "\\" || c === "@" || c > "~" || c < " ")
				lost(`'${c}' outside of strings`);
			if (text.startsWith("<!--", at) || text.startsWith("-->", at))
				lost("a comment of HTML");
			if (c === "{")
				open.push("{");
			const dots = text.startsWith("...", at) ? 3 : 1;

			found.push({ kind: "mark", text: text.slice(at, at + dots) });
			at += dots;
		}
	}
	return found;
}

// Words that nothing but types, or what may have them without a mark, begins with.
const TYPED = new Set(
	("abstract accessor as asserts class declare enum function implements infer interface is keyof module namespace override " +
		"private protected public readonly satisfies type unique").split(" "),
);

// Whether the text surely is a module of JavaScript, and would be the same one without its types: none are in it.
function isPlain(all) {
	const open = []; // the braces around: "{}" for those of an object, else the mark
	let isModule = false;

	for (let i = 0; i < all.length; i++) {
		const { kind, text } = all[i];
		const last = all[i - 1];
		const lastMark = last && last.kind === "mark" ? last.text : "";
		const next = all[i + 1] && all[i + 1].kind === "mark" ? all[i + 1].text : "";

		if (kind === "word") {
			if (TYPED.has(text))
				return false;
			if ((text === "import" || text === "export") && !open.length && !"(.".includes(next || " "))
				isModule = true;
			// import x = require(…), export = x
			if ((text === "export" && next === "=") || (text === "import" && all[i + 2] && all[i + 2].text === "="))
				return false;
		}
		if (kind !== "mark")
			continue;
		if (text === "<" || text === "?" || (text === "!" && last && !"(,=:[&|{;".includes(lastMark || " ")))
			return false;
		if (text === "{" || text === "(" || text === "[") {
			const isObject = text === "{" && (last && last.kind === "word" ? /^(default|return)$/.test(last.text) :
				["(", ",", "=", ":", "[", "..."].includes(lastMark));

			open.push(isObject ? "{}" : text);
		} else if (text === "}" || text === ")" || text === "]") {
			open.pop();
		} else if (text === ":") {
			const before = all[i - 2];

			if (!last || (last.kind !== "word" && last.kind !== "string") || open[open.length - 1] !== "{}" ||
				before.kind !== "mark" || !"{,".includes(before.text))
				return false;
		}
	}
	return isModule;
}

// { imports: what is named by import, export … from and require; why: "" where nothing is mentioned that could
// answer otherwise the next time; any: what is mentioned could read files; touches: what a config may not change is
// mentioned; lost: imports may be missing; plain: it has no types }
function scan(text) {
	const imports = [];
	let all;
	let why = "";
	let any = false;
	let touches = false;

	try {
		all = tokens(text);
	} catch (e) {
		return { imports, why: e instanceof Lost ? e.message : "cannot be read", any: true, touches: true, lost: true, plain: false };
	}
	const word = (i) => (all[i] && all[i].kind === "word" ? all[i].text : "");
	const mark = (i) => (all[i] && all[i].kind === "mark" ? all[i].text : "");
	const string = (i) => (all[i] && all[i].kind === "string" ? all[i].text : null);
	const mention = (what, isBlind = BLIND.has(what)) => {
		why = why || `mentions ${what}`;
		any = any || !isBlind;
	};
	// From the names of an import or export to the string after "from".
	const from = (i) => {
		for (; i < all.length; i++) {
			if (word(i) === "from" && string(i + 1) !== null)
				return string(i + 1);
			if (all[i].kind !== "word" && all[i].kind !== "string" && !"{},*".includes(mark(i)))
				return null;
		}
		return null;
	};

	for (let i = 0; i < all.length; i++) {
		const name = word(i);
		const isProperty = mark(i - 1) === ".";

		if (!name)
			continue;
		touches = touches || NAMES_GUARDED.has(name);
		if (UNSTEADY_PROPERTIES.has(name))
			mention(name);
		// { name: … }, ({ name?: string }), (name: string): no use of it.
		const isKey = /^[{,;(]$/.test(mark(i - 1)) && mark(mark(i + 1) === "?" ? i + 2 : i + 1) === ":";

		if (isProperty || isKey)
			continue;
		if (name === "import") {
			const typeOnly = word(i + 1) === "type" && (/[{*]/.test(mark(i + 2)) || (word(i + 2) && word(i + 2) !== "from"));

			if (string(i + 1) !== null)
				imports.push(string(i + 1));
			else if (mark(i + 1) === "(" || mark(i + 1) === ".")
				mention(`import${mark(i + 1)}`);
			else if (!typeOnly && from(i + 1) !== null)
				imports.push(from(i + 1));
			else if (!typeOnly)
				mention("import");
		} else if (name === "export" && (mark(i + 1) === "*" || mark(i + 1) === "{")) {
			let end = i + 1;

			while (mark(i + 1) === "{" && end < all.length && mark(end) !== "}")
				end++;
			if (mark(i + 1) === "*" ? from(i + 1) !== null : word(end + 1) === "from" && string(end + 2) !== null)
				imports.push(mark(i + 1) === "*" ? from(i + 1) : string(end + 2));
		} else if (name === "require") {
			if (mark(i + 1) === "(" && string(i + 2) !== null && mark(i + 3) === ")")
				imports.push(string(i + 2));
			else
				mention(name);
		} else if (name === "module") {
			if (mark(i + 1) !== "." || word(i + 2) !== "exports")
				mention(name);
		} else if (name === "with") {
			if (mark(i + 1) !== "{")
				mention(name);
		} else if (UNSTEADY.has(name)) {
			mention(name, BLIND.has(name) || (name === "process" && mark(i + 1) === "." && word(i + 2) === "env"));
		}
	}
	return { imports, why, any, touches, lost: false, plain: isPlain(all) };
}

// ---------------------------------------------------------------- what a file rests on

const SCRIPTS = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];
const ENDINGS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
const { builtinModules } = module;
const isBuiltin = (spec) =>
	/^(node|bun):/.test(spec) || spec === "bun" || builtinModules.includes(spec.split("/")[0]);

let root = "";
const isInside = (file) => file.startsWith(root + "/");
const fromRoot = (file) => file.slice(root.length + 1);
const isPackaged = (file) => file.includes("/node_modules/");

// undefined: nothing there
function look(file) {
	try {
		return lstatSync(file);
	} catch {
		return undefined;
	}
}

// The package.json files that say how node takes the file, there or not, up to the first that is.
function manifests(file) {
	const found = [];

	for (let dir = path.dirname(file); dir === root || isInside(dir); dir = path.dirname(dir)) {
		const manifest = path.join(dir, "package.json");

		found.push(manifest);
		if (look(manifest) || dir === root)
			break;
	}
	return found;
}

// Whether a directory at or above the file's has it installed, or the runtime itself knows where it is.
function isInstalled(file, spec) {
	const parts = spec.split("/");
	const name = spec.startsWith("@") ? parts.slice(0, 2).join("/") : parts[0];

	for (let dir = path.dirname(file); ; dir = path.dirname(dir)) {
		if (fs.existsSync(path.join(dir, "node_modules", name)))
			return true;
		if (dir === path.dirname(dir))
			break;
	}
	try {
		if (typeof Bun !== "undefined")
			Bun.resolveSync(spec, path.dirname(file));
		else
			module.createRequire(file).resolve(spec);
		return true;
	} catch {
		return false;
	}
}

function explainMissing(file, spec) {
	if (/^vx(\/|$)/.test(spec))
		return `imports "${spec}", which no node_modules at or above it provides: what vx gives to configs is "@vzn/vx"`;
	for (let dir = path.dirname(file); ; dir = path.dirname(dir)) {
		if (fs.existsSync(path.join(dir, ".pnp.cjs")))
			return `imports "${spec}", which Plug'n'Play keeps out of sight: set "nodeLinker: node-modules" in .yarnrc.yml and install`;
		if (dir === path.dirname(dir))
			break;
	}
	return `imports "${spec}", which no node_modules at or above it provides: install first`;
}

// bun takes from the nearest tsconfig.json what the name of a package means: whether it could be anything but a package.
function isMapped(file, it) {
	const configs = [];

	for (let dir = path.dirname(file); !configs.length && (dir === root || isInside(dir)); dir = path.dirname(dir))
		for (const name of ["tsconfig.json", "jsconfig.json"]) {
			const config = path.join(dir, name);

			it.needs.push(config);
			if (look(config))
				configs.push(config);
		}
	for (const config of configs) {
		const text = readFileSync(config, "utf8");
		const from = /"extends"\s*:\s*"(\.\.?\/[^"\\]*)"/.exec(text);

		if (/"(paths|baseUrl)"/.test(text) || text.includes("\\u") || (text.match(/"extends"/g) || []).length !== (from ? 1 : 0))
			return true;
		for (const name of from ? [from[1], `${from[1]}.json`] : []) {
			const base = path.join(path.dirname(config), name);

			it.needs.push(base);
			if (look(base) && !configs.includes(base))
				configs.push(base);
		}
	}
	return false;
}

// The conditions in "exports" that no runtime here asks for.
const FOREIGN = new Set(["types", "browser", "react-native", "worker", "workerd", "edge-light"]);

// All that "exports" may lead to, whichever runtime asks, and for import or require.
const leaves = (x) =>
	typeof x === "string" ? [x] :
	isArray(x) ? x.flatMap(leaves) :
	x && typeof x === "object" ? Object.keys(x).flatMap((key) => (FOREIGN.has(key) ? [] : leaves(x[key]))) : [];

// The names that `sub` ("." or "./part") may have in the package at `dir`, from there; none where that is not so simple.
function targets(dir, manifest, sub) {
	const { exports } = manifest;

	if (exports !== undefined && exports !== null) {
		const isKeyed = typeof exports === "object" && Object.keys(exports).some((key) => key.startsWith("."));
		const found = leaves(isKeyed ? Object.hasOwn(exports, sub) && exports[sub] : sub === "." && exports);

		return found.every((name) => /^\.\/[^*%?#\\]+$/.test(name)) ? found : [];
	}
	const fields = sub === "." ? [manifest.main, manifest.module].filter((name) => name && typeof name === "string") : [sub];
	const index = sub === "." ? ENDINGS.map((ending) => `index${ending}`) : [];

	// One that is there as it is named is taken by all.
	if (fields.length && fields.every((name) => look(path.join(dir, name))?.isFile()))
		return fields;
	return [
		...fields.flatMap((name) => [
			name,
			...ENDINGS.map((ending) => name + ending),
			...index.map((file) => `${name}/${file}`),
		]),
		...index,
	];
}

// An import by the name of a package, as all runtimes find it: true when all files that it can mean are in it.next, and in
// it.needs all whose coming or going would lead elsewhere.
function follow(file, spec, it) {
	const parts = spec.split("/");
	const name = parts.splice(0, spec.startsWith("@") ? 2 : 1).join("/");
	const sub = [".", ...parts].join("/");

	if (!/^(@[\w~.-]+\/)?[\w~-][\w~.-]*$/.test(name) || !/^\.(\/[\w~@-][\w~@.-]*)*$/.test(sub))
		return false;
	if (typeof Bun !== "undefined" && isMapped(file, it))
		return false;
	// A package may import itself by its name.
	for (const manifest of manifests(file)) {
		it.manifests.push(manifest);
		if (look(manifest) && parse(readFileSync(manifest, "utf8")).name === name)
			return false;
	}
	for (let above = path.dirname(file); above === root || isInside(above); above = path.dirname(above)) {
		const modules = path.join(above, "node_modules");
		const at = path.join(modules, name);
		const there = look(at);

		if (!look(modules)) {
			it.needs.push(modules);
			continue;
		}
		// require takes them for the package.
		for (const ending of [...ENDINGS, ".node"]) {
			it.needs.push(at + ending);
			if (look(at + ending))
				return false;
		}
		if (!there) {
			it.needs.push(at);
			continue;
		}
		// Not all runtimes look at node_modules/node_modules.
		return path.basename(above) !== "node_modules" && enter(at, there, sub, it);
	}
	return false;
}

// The same of the package that was found.
function enter(at, there, sub, it) {
	const isLink = there.isSymbolicLink();
	// One link, as package managers make it, and no other on the way.
	const dir = isLink ? path.resolve(path.dirname(at), readlinkSync(at)) : at;
	const manifest = path.join(dir, "package.json");
	let found = 0;

	if (!isInside(dir) || realpathSync(path.dirname(at)) !== path.dirname(at) || realpathSync(manifest) !== manifest)
		return false;
	if (isLink) {
		it.needs.push(at);
		it.links.push(at);
	}
	it.manifests.push(manifest);
	const names = targets(dir, parse(readFileSync(manifest, "utf8")), sub);
	// bun takes TypeScript for JavaScript that is not there.
	const others = names
		.filter((name) => /\.[mc]?jsx?$/.test(name) && !look(path.join(dir, name)))
		.flatMap((name) => [".ts", ".tsx", ".mts", ".cts"].map((ending) => name.replace(/\.[mc]?jsx?$/, ending)));

	for (const name of new Set([...names, ...others])) {
		const target = path.join(dir, name);
		const stat = look(target);

		if (!target.startsWith(dir + "/"))
			return false;
		if (!stat)
			it.needs.push(target);
		else if (!stat.isDirectory())
			found = it.next.push(target);
	}
	return found > 0;
}

function tryToFollow(file, spec, it) {
	try {
		return follow(file, spec, it);
	} catch {
		return false;
	}
}

// One file by itself: { why, any, touches, needs, manifests, links: those of `needs` that are links, next, missing, text, plain }
function study(file) {
	const it = { why: "", any: false, touches: false, needs: [file], manifests: [], links: [], next: [], missing: "", text: "", plain: false };
	const stat = look(file);
	const giveUp = (why) => {
		it.why = it.why || why;
		it.any = true;
	};

	if (!isInside(file) || !stat || !stat.isFile() || realpathSync(file) !== file) {
		giveUp("lies behind a link or outside of the workspace");
		return it;
	}
	if (file.endsWith(".json"))
		return it;
	if (!SCRIPTS.includes(path.extname(file))) {
		giveUp("is neither JavaScript, TypeScript nor JSON");
		return it;
	}
	if (isPackaged(file) && stat.size > PACKAGED_MAX) {
		giveUp("is too large to go through");
		return it;
	}
	if (/\.[jt]s$/.test(file))
		it.manifests.push(...manifests(file));
	const text = readFileSync(file, "utf8");
	const seen = scan(text);

	it.text = text;
	it.plain = seen.plain;
	it.why = seen.why;
	it.any = seen.any;
	it.touches = seen.touches;
	for (const spec of seen.imports) {
		if (VIRTUAL.includes(spec))
			continue;
		if (/^\.\.?\//.test(spec) && !/[%?#\\]/.test(spec)) {
			const target = path.join(path.dirname(file), spec);
			const there = look(target);

			if (there && !there.isDirectory()) {
				it.next.push(target);
				continue;
			}
			// It is not said which file is meant: all are of interest that it could be.
			const stem = target.replace(/\.[mc]?js$/, "");
			const names = [target, ...ENDINGS.map((ending) => target + ending)];

			if (stem !== target)
				names.push(...ENDINGS.map((ending) => stem + ending));
			if (there)
				giveUp(`imports the directory "${spec}"`);
			for (const name of names)
				(look(name) ? it.next : it.needs).push(name);
			continue;
		}
		const isPackage = /^[@a-z]/i.test(spec) && !/^[a-z]+:/i.test(spec) && !isBuiltin(spec);

		if (BLIND_MODULES.has(spec))
			it.why = it.why || `imports "${spec}"`;
		else if (it.any || !isPackage || !tryToFollow(file, spec, it))
			giveUp(`imports "${spec}"`);
		// What a package asks for and does without is its own affair.
		if (!seen.lost && isPackage && !isPackaged(file) && !isInstalled(file, spec))
			it.missing = it.missing || explainMissing(file, spec);
	}
	for (const need of [...it.needs, ...it.manifests])
		if (!it.any && !it.links.includes(need) && look(need)?.isSymbolicLink())
			giveUp(`rests on ${isInside(need) ? fromRoot(need) : need}, which is a link`);
	return it;
}

const studied = new Map();

// A config with all that it imports.
function closure(config) {
	const seen = new Set([config]);
	const needs = new Set();
	const manifests = new Set();
	let why = "";
	let any = false;
	let touches = false;
	let missing = "";

	for (const file of seen) {
		let it = studied.get(file);

		if (any && isPackaged(file))
			continue;
		if (isPackaged(file) && seen.size > PACKAGED_FILES_MAX) {
			why = why || `it imports more than ${PACKAGED_FILES_MAX} files`;
			any = true;
			continue;
		}
		if (!it) {
			it = study(file);
			studied.set(file, it);
		}
		const other = file === config || !isInside(file) ? "" : fromRoot(file);

		why = why || (it.why && `${other || "it"} ${it.why}`);
		any = any || it.any;
		touches = touches || it.touches;
		missing = missing || (it.missing && (other && `${other}: `) + it.missing);
		for (const [from, to] of [[it.needs, needs], [it.manifests, manifests]])
			for (const need of from) {
				if (isInside(need)) {
					to.add(fromRoot(need));
					continue;
				}
				why = why || "it rests on a file outside of the workspace";
				any = true;
			}
		for (const next of it.next)
			seen.add(next);
	}
	return { why, any, touches, missing, needs: [...needs], manifests: [...manifests].filter((file) => !needs.has(file)) };
}

// ---------------------------------------------------------------- what a config may not change

const guarded = [];
// To look at one makes node load all that is behind them: that is done before the first config that could change them.
const LAZY = new Set("FormData Headers Request Response MessageEvent WebSocket CloseEvent EventSource".split(" "));

function guard(name, object) {
	if ((typeof object !== "object" && typeof object !== "function") || object === null)
		return;
	const keys = ownKeys(object);

	guarded.push({
		name,
		object,
		keys,
		was: keys.map((key) => (object === globalThis && LAZY.has(key) ? null : getOwnPropertyDescriptor(object, key))),
		frozen: isFrozen(object),
		parent: getPrototypeOf(object),
		open: isExtensible(object),
	});
}

function takeSnapshot() {
	guard("", globalThis);
	for (const name of GUARDED) {
		guard(name, globalThis[name]);
		if (globalThis[name] && globalThis[name].prototype)
			guard(`${name}.prototype`, globalThis[name].prototype);
	}
	guard("%TypedArray%.prototype", getPrototypeOf(Uint8Array.prototype));
	guard("%ArrayIterator%.prototype", getPrototypeOf([][Symbol.iterator]()));
	guard("%Generator%.prototype", getPrototypeOf(function* () {}).prototype);
	guard("%AsyncFunction%.prototype", getPrototypeOf(async function () {}));
	// What another config reads with goes through these, and so does what is told of it here.
	guard("node:fs", fs);
	guard("node:path", path);
	guard("node:url", url);
	guard("process.", { exit: process.exit, chdir: process.chdir, cwd: process.cwd, env: process.env });
}

function completeSnapshot() {
	const { object, keys, was } = guarded[0];
	const { chdir } = process;

	for (let k = 0; k < keys.length; k++)
		if (!was[k])
			was[k] = getOwnPropertyDescriptor(object, keys[k]);
	if (chdir === process.chdir)
		return;
	// What they load has node put one of its own there.
	const own = guarded[guarded.length - 1];

	for (let k = 0; k < own.keys.length; k++)
		if (own.keys[k] === "chdir" && own.was[k].value === chdir)
			own.was[k] = getOwnPropertyDescriptor(process, "chdir");
}

const nameOf = (holder, key) =>
	(holder && !holder.endsWith(".") ? `${holder}.` : holder) + (typeof key === "symbol" ? `[${key.toString()}]` : key);

function isSame(object, was, now) {
	if (!now)
		return false;
	if (was.get === now.get && was.set === now.set && was.value === now.value && was.writable === now.writable &&
		was.configurable === now.configurable && was.enumerable === now.enumerable)
		return true;
	if (typeof was.value === "number" && was.value !== was.value && now.value !== now.value)
		return true;
	// A global, or a class in a module of the runtime, that is only made when it is asked for.
	return !!was.get && !now.get && now.value === was.get.call(object);
}

// node keeps it there from the first use of fetch or WebAssembly on, its own for TypeScript included.
const isRuntimes = (key) => typeof key === "symbol" && String(key.description).startsWith("undici.");

let environment;
let directory;
let mask;

function changes() {
	const found = [];

	for (let i = 0; i < guarded.length; i++) {
		const g = guarded[i];
		const object = g.name === "process." ? process : g.object;

		for (let k = 0; k < g.keys.length; k++) {
			const key = g.keys[k];

			if (g.name === "process."
				? object[key] !== g.was[k].value
				: g.was[k] && !isSame(object, g.was[k], getOwnPropertyDescriptor(object, key)))
				found[found.length] = nameOf(g.name, key);
		}
		if (g.name === "process.")
			continue;
		const keys = ownKeys(object);

		if (keys.length !== g.keys.length)
			for (let k = 0; k < keys.length; k++) {
				let known = false;

				for (let j = 0; j < g.keys.length && !known; j++)
					known = g.keys[j] === keys[k];
				if (!known && !isRuntimes(keys[k]))
					found[found.length] = nameOf(g.name, keys[k]);
			}
		if (getPrototypeOf(object) !== g.parent)
			found[found.length] = nameOf(g.name, "__proto__");
		if (isExtensible(object) !== g.open || isFrozen(object) !== g.frozen)
			found[found.length] = `${g.name || "globalThis"}, which takes no more properties`;
	}
	const variables = ownKeys(env);

	for (let i = 0; i < variables.length; i++)
		if (env[variables[i]] !== environment[variables[i]])
			found[found.length] = `process.env.${variables[i]}`;
	for (const name in environment)
		if (env[name] === undefined)
			found[found.length] = `process.env.${name}`;
	if (cwd() !== directory)
		found[found.length] = "the working directory";
	if (umask() !== mask)
		found[found.length] = "the umask";
	return found;
}

// ---------------------------------------------------------------- values

class Refused extends Error {}

function pathOf(keys) {
	let text = "";

	for (const key of keys) {
		if (typeof key === "number")
			text += `[${key}]`;
		else if (key && key.length <= 80 && !/[.[\]"'\0- \x7f]/.test(key))
			text += (text ? "." : "") + key;
		else
			text += `[${stringify(key.slice(0, 80))}]`;
	}
	return text;
}

// The value as JSON text, or Refused with the path of what is no JSON data.
function jsonOf(root, isWorkspace) {
	const keys = [];
	const above = [];
	let length = 0;

	const refuse = (what) => {
		throw new Refused((keys.length ? `${pathOf(keys)}: ` : "the default export ") + what);
	};
	const piece = (text) => {
		length += text.length;
		if (length > TEXT_MAX)
			throw new Refused(`the default export is larger than ${TEXT_MAX >> 20} MiB as JSON`);
		return text;
	};
	const string = (text, what) => {
		if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text))
			refuse(`${what} half a character (a lone surrogate)`);
		return piece(stringify(text));
	};
	const property = (object, key) => {
		const d = getOwnPropertyDescriptor(object, key);

		if (d && (d.get || d.set))
			refuse("is a getter or setter: write its value");
		return d;
	};
	const array = (value) => {
		const parts = [];

		for (let i = 0; i < value.length; i++) {
			keys.push(i);
			const d = property(value, i);

			parts.push(json(d ? d.value : undefined, true));
			keys.pop();
		}
		if (ownKeys(value).length !== value.length + 1)
			refuse("is an array with properties: write an array of data");
		return piece("[" + ",".repeat(parts.length)) && `[${parts.join(",")}]`;
	};
	const object = (value) => {
		const parts = [];

		for (const key of ownKeys(value)) {
			if (typeof key === "symbol") {
				if (getOwnPropertyDescriptor(value, key).enumerable)
					refuse(`has the symbol ${key.toString()} as a key: write a string`);
				continue;
			}
			if (isWorkspace && !keys.length && key === "plugins") {
				parts.push('"plugins":null'); // refused by name, whatever it holds
				continue;
			}
			keys.push(key);
			const d = property(value, key);

			if (d.enumerable && d.value !== undefined) {
				if (key.includes("\0"))
					refuse("has a NUL in its name");
				parts.push(string(key, "has in its name") + ":" + json(d.value, false));
			}
			keys.pop();
		}
		return piece("{" + ",".repeat(parts.length)) && `{${parts.join(",")}}`;
	};
	const json = (value, inArray) => {
		switch (typeof value) {
		case "string":
			return string(value, "holds");
		case "boolean":
			return piece(String(value));
		case "number":
			if (value !== value || value === Infinity || value === -Infinity)
				refuse(`is ${value}: JSON has no such number`);
			if (Math.abs(value) >= 2 ** 63 && Math.abs(value) < 1e21)
				refuse(`is ${value}: too large a number`);
			return piece(stringify(value));
		case "undefined":
			return refuse(inArray ? "is undefined: an array has no gaps" : "is undefined");
		case "function":
			return refuse(keys.length ? "is a function: write data" : "is a function: export what it returns");
		case "symbol":
		case "bigint":
			return refuse(`is a ${typeof value}: write ${typeof value === "bigint" ? "a number" : "data"}`);
		}
		if (value === null)
			return piece("null");
		if (above.includes(value))
			refuse("holds itself: write data that ends");
		if (above.length >= DEPTH_MAX)
			refuse("is nested too deep");
		const parent = getPrototypeOf(value);

		if (isArray(value) ? parent !== Array.prototype : parent !== Object.prototype && parent !== null)
			refuse(`is ${classOf(parent)}: write plain data`);
		above.push(value);
		const text = isArray(value) ? array(value) : object(value);

		above.pop();
		return text;
	};

	if (root === null || typeof root !== "object")
		refuse(typeof root === "function" ? "is a function: export what it returns" :
			root === undefined ? "is missing: write export default { … }" :
			`is ${root === null ? "null" : `a ${typeof root}`}: export an object`);
	if (isArray(root))
		refuse("is an array: export an object");
	return json(root, false);
}

function classOf(prototype) {
	const d = getOwnPropertyDescriptor(prototype, "constructor");
	const name = d && typeof d.value === "function" ? d.value.name : "";

	return name ? `an instance of ${String(name).slice(0, 60)}` : "an object with a prototype";
}

// ---------------------------------------------------------------- evaluating

// Where in the workspace an error comes from: "packages/a/vx.config.ts:3:9".
function placeOf(error) {
	const at = error && error.position;

	if (at && at.file && String(at.file).startsWith(root + "/"))
		return `${fromRoot(String(at.file))}:${at.line}:${at.column}`;
	const lines = String((error && error.stack) || "").split("\n");

	for (const line of lines) {
		const text = line.replace("file://", "").replace(INSTANCE, "");
		const start = text.indexOf(root + "/");
		const found = start < 0 ? null : /^(.*?):(\d+)(?::(\d+))?\)?$/.exec(text.slice(start + root.length + 1));

		if (found)
			return `${found[1]}:${found[2]}${found[3] ? `:${found[3]}` : ""}`;
	}
	return "";
}

function describe(error) {
	try {
		const first = error && error.errors && error.errors.length ? error.errors[0] : error;
		const isError = first instanceof Error || (first && typeof first.message === "string");
		const place = isError ? placeOf(first) : "";
		const text = isError ? `${first.name || "Error"}: ${first.message}` : `what is no error: ${String(first)}`;
		const loading = isError && /^(SyntaxError|BuildMessage|ResolveMessage)$|ERR_MODULE_NOT_FOUND/.test(
			`${first.name}`) || (first && /^ERR_/.test(String(first.code)));

		return `${loading ? "cannot be loaded: " : "throws "}${text.replace(INSTANCE, "").replace(/[\0- ]+/g, " ").slice(0, MESSAGE_MAX)}` +
			(place ? ` (${place})` : "");
	} catch {
		return "throws what cannot be shown";
	}
}

// What a config keeps in a file that it shares, a counter or a preset that it changes, the next one does not see: it would
// depend on which of them are evaluated in this process, which is not remembered. The files of installed packages are
// shared all the same, as loading some of them takes longer than all configs.
const INSTANCE = /\?vx=\d+/g;
const isOwned = (file) => isInside(file) && !isPackaged(file);

// So that node and deno load the file once more for each config.
function ownInstance(found) {
	if (!found.url.startsWith("file:") || /[?#]/.test(found.url) || !isOwned(url.fileURLToPath(found.url)))
		return found;
	return { ...found, url: `${found.url}?vx=${current}` };
}

// The same for what was required, and in bun for all.
function forgetInstances() {
	for (const file of ownKeys(builtin.cache))
		if (typeof file === "string" && isOwned(file))
			delete builtin.cache[file];
}

const erased = new Map();

// What a load of it has found, for all instances. What is wrong with its types node says where it is loaded.
function eraseOnce(file, load) {
	let it = erased.get(file);

	if (it)
		return it;
	it = load();
	try {
		if (it.format === "module-typescript")
			it = { format: "module", source: module.stripTypeScriptTypes(String(it.source)) };
	} catch {}
	it = { ...it, shortCircuit: true };
	erased.set(file, it);
	return it;
}

function installVirtual() {
	const same = (value) => value;

	if (typeof Bun !== "undefined") {
		Bun.plugin({
			name: "vx",
			setup(build) {
				for (const spec of VIRTUAL)
					build.module(spec, () => ({
						exports: { defineProject: same, defineWorkspace: same },
						loader: "object",
					}));
			},
		});
		return;
	}
	// No such file is ever opened. In the form that who asks can take.
	const sources = {
		"file:///@vzn/vx.mjs": "export const defineProject = (value) => value, defineWorkspace = defineProject;",
		"file:///@vzn/vx.cjs": "exports.defineProject = exports.defineWorkspace = (value) => value;",
	};
	const formatOf = (address) => (address.endsWith(".cjs") ? "commonjs" : "module");

	const isNode = typeof Deno === "undefined";

	module.registerHooks({
		resolve(spec, context, next) {
			if (!VIRTUAL.includes(spec))
				return ownInstance(next(spec, context));
			const address = `file:///@vzn/vx.${[...(context.conditions || [])].includes("require") ? "c" : "m"}js`;

			return { url: address, format: formatOf(address), shortCircuit: true };
		},
		load(address, context, next) {
			if (sources[address])
				return { format: formatOf(address), source: sources[address], shortCircuit: true };
			const plain = address.replace(INSTANCE, "");

			// deno with hooks takes JSON that is required for JavaScript.
			if (!isNode && plain.startsWith("file:") && plain.endsWith(".json"))
				return { format: "json", source: readFileSync(url.fileURLToPath(plain), "utf8"), shortCircuit: true };
			// node would look for what kind of module it is by taking the types out and compiling it, and then begin anew. It has
			// to load much before it can take any out.
			const known = isNode && /\.m?ts$/.test(plain) && !/[%?#]/.test(plain) ? studied.get(plain.slice(7)) : undefined;

			if (known && known.plain && (!context.format || context.format === "module-typescript"))
				return { format: "module", source: known.text, shortCircuit: true };
			if (known && known.text && context.format === "module-typescript")
				return eraseOnce(plain, () => ({ format: context.format, source: known.text }));
			return isNode && plain !== address ? eraseOnce(plain, () => next(address, context)) : next(address, context);
		},
	});
}

// The hooks of node do not reach what a CommonJS module requires that was imported.
const load = async (file) =>
	/\.c[jt]s$/.test(file) ? { default: module.createRequire(file)(file) } : import(url.pathToFileURL(file).href);

const defaultOf = (namespace) => {
	const value = namespace.default;

	// TypeScript and Babel compile to this where modules are CommonJS.
	return value && value.__esModule === true && "default" in value ? value.default : value;
};

function sayChanges() {
	const changed = changes();

	return changed.length
		? `changes what all configs share: ${changed.slice(0, 5).join(", ")}` +
				(changed.length > 5 ? ` and ${changed.length - 5} more` : "")
		: "";
}

async function evaluate(index, name) {
	const file = path.join(root, name);

	say("begin", index);
	forgetInstances();
	const rests = closure(file);

	if (rests.missing)
		return rests.missing;
	if (rests.why || rests.touches)
		completeSnapshot();
	let value;

	try {
		value = await defaultOf(await load(file));
	} catch (error) {
		return describe(error);
	}
	let text;
	let failure = "";

	try {
		text = jsonOf(value, /^vx\.workspace\./.test(path.basename(name)));
	} catch (error) {
		failure = error instanceof Refused ? error.message : describe(error);
	}
	// Before the value: what is wrong with it may come of this. It costs a part of a millisecond, which those that have
	// no name for any of it are spared.
	const changed = failure || rests.why || rests.touches ? sayChanges() : "";

	if (changed)
		return `${changed}; a config may not`;
	if (failure)
		return failure;
	say("value", index, text, rests.why, rests.needs, rests.manifests, rests.any);
	return "";
}

function runtime() {
	return typeof Bun !== "undefined" ? ["bun", process.versions.bun] :
		typeof Deno !== "undefined" ? ["deno", Deno.version.deno] : ["node", process.versions.node];
}

function isOld([name, version]) {
	const [major, minor] = version.split(".").map(Number);

	return name === "node" && (major < 22 || (major === 22 && minor < 18) || (major === 23 && minor < 6) ||
		!module.registerHooks);
}

let current = -1;

const wanted = () => readFileSync("/proc/self/fd/4", "utf8").split("\0").slice(0, -1);

async function main() {
	const who = runtime();

	if (isOld(who)) {
		say("old", who[1]);
		return;
	}
	say("runtime", ...who);
	// "Type stripping is experimental": not news for who wrote a config in TypeScript.
	process.removeAllListeners("warning");
	root = wanted()[0];
	process.chdir(root);
	installVirtual();
	takeSnapshot();
	environment = { ...env };
	directory = cwd();
	mask = umask();
	for (let next = 1; readSync(bell, rung) === 1; ) {
		const paths = wanted();

		for (current = 0; next < paths.length; current++, next++) {
			const failure = await evaluate(current, paths[next]);

			if (failure) {
				say("fail", current, failure.replace(/[\0-\x1f]/g, " "));
				return;
			}
		}
		const changed = sayChanges();

		if (changed) {
			say("fail", current - 1, `${changed}; a config may not: this one, or one that was evaluated before it`);
			return;
		}
		say("done");
	}
}

// Nothing is left that could settle what is waited for.
process.on("beforeExit", () => {
	say("fail", current, "never settles: what it waits for does not come");
	exit(1);
});
process.on("uncaughtException", (error) => {
	say("fail", current, describe(error));
	exit(1);
});
process.on("unhandledRejection", (error) => {
	say("fail", current, describe(error));
	exit(1);
});
main().then(() => exit(0));
