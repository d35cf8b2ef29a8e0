"""The page of `spdmetric compare` in a real Chromium: silent, sortable, fit for a phone, readable by all."""

import csv
import io
import shutil
import subprocess
from base64 import b64decode

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from comparison_data import FEW, HOSTILE_NAMES, write_page

# Texts whose contrast with the first opaque ground behind them is too low, after WCAG 2.
CONTRAST = """
const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const numbers = (color) => color.match(/[0-9.]+/g).map(Number);
const luminance = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const ground = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c;
  }
  return [255, 255, 255];
};
const dim = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), e = walker.currentNode.parentElement;
  if (!text || ["SCRIPT", "STYLE"].includes(e.tagName)) continue;
  const style = getComputedStyle(e);
  const ink = numbers(style.color);
  const [a, b] = [luminance(ink), luminance(ground(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) dim.push([text.slice(0, 40), style.color]);
}
return dim;
"""

NAMELESS = """
return Array.from(document.querySelectorAll("img, button, a, [role=region]")).filter((e) => {
  const named = e.getAttribute("aria-labelledby");
  const name = named ? document.getElementById(named)?.textContent : null;
  return !(name || e.getAttribute("aria-label") || e.getAttribute("alt") || e.textContent.trim());
}).map((e) => e.outerHTML.slice(0, 80));
"""

# Elements that stand out of their parents; what scrolls is allowed to.
CLIPPED = """
return Array.from(document.querySelectorAll("body *")).filter((e) => {
  if (e.parentElement.closest(".scroll, pre")) return false;
  const own = e.getBoundingClientRect(), outer = e.parentElement.getBoundingClientRect();
  return own.width > 0 && (own.right > outer.right + 1.5 || own.left < outer.left - 1.5);
}).map((e) => e.outerHTML.slice(0, 80));
"""

COLUMN = (
    "return Array.from(document.querySelectorAll('#accuracies tbody tr')).map((r) => r.cells[%d].textContent)"
)


@pytest.fixture(scope="module")
def driver():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip(
            "the browser test needs chromium and chromedriver: apt-get install chromium chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{flag}")
    options.add_argument("--disable-dev-shm-usage")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield browser
    browser.quit()


@pytest.fixture
def browser(driver, page):
    set_theme(driver, "light")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.set_window_size(1280, 900)
    driver.get(page.as_uri())
    return driver


def set_theme(browser, theme):
    """Light, dark, or on paper."""
    features = [{"name": "prefers-color-scheme", "value": "light" if theme == "print" else theme}]
    media = "print" if theme == "print" else "screen"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def set_width(browser, width):
    """Headless windows have a least width; the emulated screen of a phone has none."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    assert browser.execute_script("return window.innerWidth") == width


def test_loads_without_a_word_in_the_console(browser):
    assert browser.title == "Which metric suits toy <1>?"
    assert browser.get_log("browser") == []
    asked = browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in asked if not name.startswith("data:")] == []


def test_tables_sort_by_mouse_and_by_keyboard(browser):
    def column(at):
        return browser.execute_script(COLUMN % at)

    buttons = browser.find_elements("css selector", "#accuracies thead button")
    assert len(buttons) == 8

    def numbers():
        return [float(text.split()[0]) for text in column(1)]

    accuracies = numbers()
    assert accuracies == sorted(accuracies, reverse=True)  # as written, the best first
    buttons[0].click()
    assert column(0) == sorted(column(0), key=str.lower)
    heading = buttons[0].find_element("xpath", "..")
    assert heading.get_attribute("aria-sort") == "ascending"
    buttons[0].send_keys(Keys.ENTER)
    assert heading.get_attribute("aria-sort") == "descending"
    assert column(0) == sorted(column(0), key=str.lower, reverse=True)
    buttons[1].send_keys(Keys.SPACE)
    assert heading.get_attribute("aria-sort") is None
    assert numbers() == accuracies
    buttons[1].send_keys(Keys.SPACE)
    assert numbers() == accuracies[::-1]


PAPER = 673  # pixels between the margins of a sheet


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400), ("print", PAPER)])
def test_fits_the_screen_shows_its_pictures_and_can_be_read_by_everyone(browser, theme, width):
    set_theme(browser, theme)
    set_width(browser, width)
    assert browser.execute_script(CONTRAST) == []
    assert browser.execute_script(NAMELESS) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(CLIPPED) == []
    pictures = browser.find_elements("css selector", "figure img")
    assert len(pictures) >= 5
    for picture in pictures:
        size = picture.size
        assert size["width"] >= (280 if theme == "print" else 300)  # two beside each other on paper
        assert size["height"] >= 80


def test_no_name_is_torn_and_no_gain_is_out_of_sight_on_a_phone(browser):
    """A long name with a hyphen stays on one line; whether learning helps is seen without scrolling."""
    set_width(browser, 400)
    one = "const word = document.querySelector('#accuracies .word'); word.textContent = 'Bures-Wasserstein';"
    lines = "return word.getBoundingClientRect().height / parseFloat(getComputedStyle(word).lineHeight)"
    assert browser.execute_script(one + lines) < 1.5
    over = "const t = document.getElementById('gains'); return t.offsetWidth - t.parentElement.offsetWidth"
    assert browser.execute_script(over) <= 0


def test_columns_have_their_headings_on_every_sheet(browser, tmp_path):
    if shutil.which("pdftotext") is None:
        pytest.skip("needs pdftotext to read what was printed: apt-get install poppler-utils")
    set_theme(browser, "print")
    more = "body.append(...Array.from(body.rows, (row) => row.cloneNode(true)));"
    browser.execute_script(f"const body = document.querySelector('#accuracies tbody'); {4 * more}")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    (tmp_path / "page.pdf").write_bytes(b64decode(printed["data"]))
    command = ["pdftotext", "-layout", str(tmp_path / "page.pdf"), "-"]
    sheets = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\f")
    scored = [sheet for sheet in sheets if any(line.count(" ± ") >= 3 for line in sheet.splitlines())]
    assert len(scored) > 1
    assert all("Log loss" in sheet for sheet in scored)


def test_the_numbers_to_save_are_those_of_the_table(browser):
    link = browser.find_element("css selector", "a[download='compare.csv']").get_attribute("href")
    rows = list(csv.DictReader(io.StringIO(b64decode(link.partition("base64,")[2]).decode())))
    deciding = [row for row in rows if row["decides"] == "True"]
    assert browser.execute_script(COLUMN % 0) == [row["title"] for row in deciding]
    assert browser.execute_script(COLUMN % 1) == [
        f"{float(row['mean']):.1f} ± {float(row['se']):.1f}" for row in deciding
    ]


def test_code_can_be_copied(browser):
    browser.execute_script("navigator.clipboard.writeText = async (text) => { window.copied = text; };")
    code = browser.find_element("css selector", "pre[data-copy]")
    button = browser.find_element("css selector", "pre[data-copy] + .tool")
    browser.execute_script("arguments[0].click()", button)
    WebDriverWait(browser, 5).until(lambda _: button.text == "Copied")
    assert browser.execute_script("return window.copied") == code.get_attribute("textContent")


def test_works_without_script(driver, page):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(page.as_uri())
        assert driver.find_elements("css selector", "#accuracies thead button") == []
        assert len(driver.find_elements("css selector", "#accuracies tbody tr")) == len(FEW.split(","))
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_names_of_any_kind_do_not_break_the_layout(driver, tmp_path, numpy_only):
    hostile_page = write_page(tmp_path, "--methods", "euclid,logeuclid-mean", names=HOSTILE_NAMES)
    driver.get(hostile_page.as_uri())
    for width in (1280, 400):
        set_width(driver, width)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert driver.execute_script("return document.documentElement.scrollHeight") < 25_000
        tables = "document.querySelectorAll('.confusion'), (t) => t.scrollWidth"
        assert driver.execute_script(f"return Math.max(...Array.from({tables}))") < 1280
    # The script in a name did not run.
    assert driver.title.startswith("Which metric suits")
    assert driver.get_log("browser") == []


def test_the_policy_allows_the_page_and_nothing_else(driver, page):
    driver.get(page.as_uri())
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.querySelectorAll('[style]').length") == 0
    shade = "return getComputedStyle(document.querySelector('.confusion td')).backgroundColor"
    assert driver.execute_script(shade).startswith("rgb(")
    add = """
    const script = document.createElement("script"), styled = document.createElement("p");
    script.textContent = "document.title = 'run'";
    styled.setAttribute("style", "color: red");
    document.body.append(script, styled);
    return getComputedStyle(styled).color;
    """
    assert driver.execute_script(add) != "rgb(255, 0, 0)"
    assert driver.title == "Which metric suits toy <1>?"
    assert sum("Content Security Policy" in line["message"] for line in driver.get_log("browser")) == 2
