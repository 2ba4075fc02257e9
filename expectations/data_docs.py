"""Data Docs that need no other host: what their pages load from CDNs is served next to them."""

import html
import re
import shutil
from pathlib import Path

VENDOR = "static/vendor"  # within the site

# What a page asks a CDN for, and where the WebJar has it. The style sheets of a dark theme, and Vega for plots that
# our suites do not have, are left out.
LOCAL = {
    r"code\.jquery\.com/jquery-3\.7\.1\.min\.js": "jquery/3.7.1/jquery.min.js",
    r"maxcdn\.bootstrapcdn\.com/bootstrap/4\.3\.1/css/bootstrap\.min\.css": "bootstrap/4.3.1/css/bootstrap.min.css",
    r"stackpath\.bootstrapcdn\.com/bootstrap/4\.3\.1/js/bootstrap\.min\.js": "bootstrap/4.3.1/js/bootstrap.min.js",
    r"cdnjs\.cloudflare\.com/ajax/libs/popper\.js/1\.12\.9/umd/popper\.min\.js": "popper.js/1.12.9/umd/popper.min.js",
    r"cdnjs\.cloudflare\.com/ajax/libs/bootstrap-datepicker/1\.9\.0/(?P<rest>[\w./-]+)": (
        r"bootstrap-datepicker/1.9.0/\g<rest>"
    ),
    r"cdnjs\.cloudflare\.com/ajax/libs/font-awesome/6\.6\.0/css/all\.min\.css": "font-awesome/6.6.0/css/all.min.css",
    r"unpkg\.com/bootstrap-table@1\.19\.[01]/dist/(?P<rest>[\w./-]+)": r"bootstrap-table/1.19.1/dist/\g<rest>",
}
TAG = re.compile(r"<(?:script|link)\b[^>]*https?://[^>]*>(?:\s*</script>)?", re.IGNORECASE)
IMAGE = re.compile(r"<img\b[^>]*https?://[^>]*>", re.IGNORECASE)
LINK = re.compile(r'<a\b[^>]*href="https?://[^>]*>(.*?)</a>', re.IGNORECASE | re.DOTALL)
NEWSLETTER = re.compile(r"<footer>.*?</footer>", re.DOTALL)
BACKGROUND = re.compile(r"""url\(['"]?https?://[^)]*\)""", re.IGNORECASE)
INTEGRITY = re.compile(r'\s(?:integrity|crossorigin)="[^"]*"')


def localise(site: Path, vendor: Path) -> None:
    """Rewrite every page of a built site so that it makes no request to any other host.

    Args:
        site: folder of the site; its pages are rewritten in place.
        vendor: folder with the unpacked WebJars of `vendor.pom.xml`.
    """
    webjars = vendor / "META-INF" / "resources" / "webjars"
    used: set[str] = set()
    for page in site.rglob("*.html"):
        to_vendor = "../" * (len(page.relative_to(site).parts) - 1) + VENDOR
        text = localise_page(page.read_text(), to_vendor, used)
        page.write_text(text.replace("Data asset: None", f"Data asset: {html.escape(page.stem.partition('-')[2])}"))
    for path in used:
        target = site / VENDOR / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(webjars / path, target)
        if "font-awesome" in path:  # its style sheet names the fonts relative to itself
            fonts = target.parents[1] / "webfonts"
            shutil.copytree(webjars / Path(path).parents[1] / "webfonts", fonts, dirs_exist_ok=True)


def localise_page(page: str, to_vendor: str, used: set[str]) -> str:
    """The page with local scripts and styles; `used` gains their paths within the WebJars."""

    def local(tag: re.Match[str]) -> str:
        for pattern, path in LOCAL.items():
            found = re.search(rf"https?://{pattern}", tag[0])
            if found:
                used.add(found.expand(path))
                return INTEGRITY.sub("", tag[0].replace(found[0], f"{to_vendor}/{found.expand(path)}"))
        return ""

    page = TAG.sub(local, page)
    # The logo comes from a bucket of its vendor and shows it which hosts look; the newsletter is an advertisement.
    page = NEWSLETTER.sub("", page)
    page = BACKGROUND.sub("none", IMAGE.sub("", page))
    return LINK.sub(r"\1", page)
