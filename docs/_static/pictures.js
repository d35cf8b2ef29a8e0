// Pictures open in full size; on phones wide ones scroll by themselves, so that their letters can be read.
document.addEventListener("DOMContentLoaded", () => {
  for (const picture of document.querySelectorAll(".bd-article img")) {
    if (picture.closest("a, .sphx-glr-thumbcontainer")) continue;
    const link = document.createElement("a");
    link.className = "picture";
    link.href = picture.src;
    picture.replaceWith(link);
    link.append(picture);
    const mark = () => link.classList.toggle("wide", picture.naturalWidth > 1.6 * picture.naturalHeight);
    if (picture.complete) mark();
    else picture.addEventListener("load", mark);
  }
});
