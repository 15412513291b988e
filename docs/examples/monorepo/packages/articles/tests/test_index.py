import unittest

from articles.index import ArticleError, index, parse


class Parse(unittest.TestCase):
    def test_title_date_body(self):
        article = parse("a.md", "# On *stars*\ndate: 2024-05-01\n\nText.\n\n")
        self.assertEqual(article, {"title": "On *stars*", "date": "2024-05-01", "body": "Text.\n"})

    def test_names_the_file_without_a_title(self):
        with self.assertRaisesRegex(ArticleError, "a.md"):
            parse("a.md", "no title\n")


class Index(unittest.TestCase):
    def setUp(self):
        self.articles = [
            {"title": "Old", "date": "2023-01-01"},
            {"title": "New", "date": "2024-01-01"},
        ]

    def test_newest_first(self):
        self.assertEqual([a["slug"] for a in index(self.articles, ["old", "new"])], ["new", "old"])

    def test_refuses_two_articles_at_one_place(self):
        with self.assertRaisesRegex(ArticleError, "both be same.html"):
            index(self.articles, ["same", "same"])

    def test_refuses_an_empty_name(self):
        with self.assertRaisesRegex(ArticleError, "no letter or digit"):
            index(self.articles, ["", "new"])


if __name__ == "__main__":
    unittest.main()
