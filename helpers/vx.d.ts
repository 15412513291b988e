// SPDX-License-Identifier: MIT
//
// The types of "@vzn/vx", for editors: what a vx.config.ts or vx.workspace.ts may say (vx-config(5)). vx itself checks the value
// that a config yields, not its types. The comment on an interface says where its fields stand; tests/lint/fields.sh holds
// them together with the tables of src/config.

/** Milliseconds, whole. */
type Milliseconds = number;
/** A task glob: "src/**", "!src/**\/*.md". */
type Glob = string;

/** (workspace) */
export interface Workspace {
	$schema?: string;
	affectedBase?: string;
	cacheDir?: string;
	cacheRetention?: CacheRetention;
	concurrency?: number;
	/** "./tools/executor": a path from the root, or an absolute one */
	executors?: string[];
	projects?: string[];
	rules?: Rules;
	timeout?: Milliseconds;
}

/** cacheRetention. */
export interface CacheRetention {
	/** "512M", "10G" */
	maxSize?: string;
	/** "12h", "30d" */
	olderThan?: string;
}

/** rules. */
export interface Rules {
	exclusiveOutputs?: boolean;
	upfrontKeys?: boolean;
}

/** (project) */
export interface Project {
	$schema?: string;
	dependencies?: string[];
	name?: string;
	tags?: string[];
	tasks?: { [name: string]: Task };
}

/** (task) */
export interface Task {
	/** Without it the task runs each time. */
	cache?: Cache;
	/** "build", "^build", "lib#build", "gen.*" */
	dependsOn?: string[];
	description?: string;
	/** Without it the task is a group. */
	exec?: Exec;
}

/** exec. */
export interface Exec {
	/** Run by sh -c in the directory of the project. */
	command: string;
	env?: Env;
	/** Goes on until somebody ends it. */
	persistent?: Persistent;
	/** Attempts after the first one. */
	retries?: number;
	/** Whether another machine may run it; "only": never this one. */
	remote?: boolean | "only";
	sandbox?: Sandbox;
	timeout?: Milliseconds;
}

/** exec.env. */
export interface Env {
	define?: { [name: string]: string };
	passThrough?: string[];
	secret?: string[];
}

/** exec.persistent. */
export interface Persistent {
	/** A regular expression for the line by which it is ready. */
	readyWhen?: string;
}

/** exec.sandbox. */
export interface Sandbox {
	allow?: Allow;
	deny?: Deny;
	hermetic?: boolean;
	ignore?: Ignore;
	nested?: boolean;
	view?: "transaction" | "live";
	weakerWhenNested?: boolean;
}

/** exec.sandbox.allow. */
export interface Allow {
	gitConfig?: boolean;
	read?: Glob[];
	unixSockets?: true | string[];
	write?: Glob[];
}

/** exec.sandbox.deny. */
export interface Deny {
	read?: Glob[];
	write?: Glob[];
}

/** exec.sandbox.ignore. */
export interface Ignore {
	read?: Glob[];
	write?: Glob[];
}

/** cache. */
export interface Cache {
	inputs: Inputs;
	outputs: Outputs;
}

/** cache.inputs. */
export interface Inputs {
	env?: string[];
	files: Glob[];
	/** Commands whose output is in the key. */
	runtime?: string[];
	/** Which keys of dependsOn are in this one: "*", "^*", "!lib#docs". */
	tasks?: string[];
	workspaceFiles?: Glob[];
	workspaceRuntime?: string[];
}

/** cache.outputs. */
export interface Outputs {
	/** Deleted before the task runs: what is made, never sources. */
	files: Glob[];
	workspaceFiles?: Glob[];
}

export declare function defineProject(project: Project): Project;
export declare function defineWorkspace(workspace: Workspace): Workspace;
