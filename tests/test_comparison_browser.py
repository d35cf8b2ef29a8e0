"""The page of `spdmetric compare` in a real Chromium: silent, sortable, fit for a phone, readable by all."""

from __future__ import annotations

import shutil
from itertools import pairwise

import pytest

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
  if (!text || ["SCRIPT", "STYLE", "title"].includes(e.tagName)) continue;
  const style = getComputedStyle(e);
  const ink = numbers(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
  const [a, b] = [luminance(ink), luminance(ground(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) dim.push([text.slice(0, 40), style.color, style.fill]);
}
return dim;
"""

NAMELESS = """
return Array.from(document.querySelectorAll("svg, img, button, a, [role=region]")).filter((e) => {
  const named = e.getAttribute("aria-labelledby");
  const name = named ? document.getElementById(named)?.textContent : null;
  return !(name || e.getAttribute("aria-label") || e.getAttribute("alt") || e.textContent.trim());
}).map((e) => e.outerHTML.slice(0, 80));
"""

HEADINGS = "return Array.from(document.querySelectorAll('h1,h2,h3,h4')).map((h) => Number(h.tagName[1]))"
COLUMN = (
    "return Array.from(document.querySelectorAll('#accuracies tbody tr')).map((r) => r.cells[%d].textContent)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPDMETRIC_COMPILED", "0")  # so small a problem does not repay loading them
        return write_page(tmp_path_factory.mktemp("comparison"), "--methods", FEW)


@pytest.fixture(scope="module")
def driver():
    webdriver = pytest.importorskip("selenium.webdriver", reason="the browser test needs selenium")
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
    driver.set_window_size(1280, 900)
    driver.get(page.as_uri())
    return driver


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
    from selenium.webdriver.common.keys import Keys

    def column(at):
        return browser.execute_script(COLUMN % at)

    buttons = browser.find_elements("css selector", "#accuracies thead button")
    assert len(buttons) == 6
    accuracies = [float(text) for text in column(1)]
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
    assert [float(text) for text in column(1)] == accuracies
    buttons[1].send_keys(Keys.SPACE)
    assert [float(text) for text in column(1)] == accuracies[::-1]


@pytest.mark.parametrize("width", [1280, 400])
def test_fits_the_screen_and_shows_its_pictures(browser, width):
    set_width(browser, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    pictures = browser.find_elements("css selector", "figure svg")
    assert len(pictures) == 9
    for picture in pictures:
        size = picture.size
        assert size["width"] >= 300
        assert size["height"] >= 100
    letters = "return Math.min(...Array.from(document.querySelectorAll('figure svg text'), " + (
        "(t) => t.getBoundingClientRect().height))"
    )
    assert browser.execute_script(letters) >= 8


def test_can_be_read_by_everyone(browser):
    assert browser.execute_script(CONTRAST) == []
    assert browser.execute_script(NAMELESS) == []
    headings = browser.execute_script(HEADINGS)
    assert headings.count(1) == 1
    assert headings[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))
    assert browser.execute_script("return document.documentElement.lang") == "en"


def test_works_without_script(driver, page):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(page.as_uri())
        assert driver.find_elements("css selector", "#accuracies thead button") == []
        assert len(driver.find_elements("css selector", "#accuracies tbody tr")) == len(FEW.split(","))
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPDMETRIC_COMPILED", "0")
        folder = tmp_path_factory.mktemp("hostile")
        return write_page(folder, "--methods", "euclid,logeuclid-mean", names=HOSTILE_NAMES)


@pytest.mark.parametrize("width", [1280, 400])
def test_names_of_any_kind_do_not_break_the_layout(driver, hostile_page, width):
    driver.get(hostile_page.as_uri())
    set_width(driver, width)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.execute_script("return document.documentElement.scrollHeight") < 25_000
    tables = "return Math.max(...Array.from(document.querySelectorAll('.confusion'), (t) => t.scrollWidth))"
    assert driver.execute_script(tables) < 1280
    # A name from right to left leaves the words beside it where they are: the count follows it.
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
