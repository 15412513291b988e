"""Reads the articles and writes one JSON index of them.

An article is a Markdown file that begins with its title ("# Title") and its date ("date: 2024-05-01").
"""
import argparse
import json
import pathlib
import subprocess


class ArticleError(Exception):
    """An article that cannot be published, with the file's name."""


def parse(name, text):
    lines = text.splitlines()
    if len(lines) < 2 or not lines[0].startswith("# ") or not lines[1].startswith("date: "):
        raise ArticleError(f"{name}: the first two lines must be '# Title' and 'date: YYYY-MM-DD'")
    return {
        "title": lines[0][2:].strip(),
        "date": lines[1][6:].strip(),
        "body": "\n".join(lines[2:]).strip() + "\n",
    }


def index(articles, slugs):
    """Newest first; two articles may not go to one place."""
    seen = {}
    for article, slug in zip(articles, slugs, strict=True):
        if not slug:
            raise ArticleError(f"'{article['title']}' has no letter or digit to make a name of")
        if slug in seen:
            raise ArticleError(f"'{article['title']}' and '{seen[slug]}' would both be {slug}.html")
        seen[slug] = article["title"]
        article["slug"] = slug
    return sorted(articles, key=lambda a: (a["date"], a["slug"]), reverse=True)


def slugs_of(titles, tool):
    done = subprocess.run([tool], input="\n".join(titles) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("content", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--slug", required=True, help="the slug program")
    args = parser.parse_args()
    files = sorted(args.content.glob("*.md"))
    articles = [parse(f.name, f.read_text(encoding="utf-8")) for f in files]
    found = index(articles, slugs_of([a["title"] for a in articles], args.slug))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(found)} articles")


if __name__ == "__main__":
    main()
