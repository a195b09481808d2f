// Sends the picture to this server again whenever something changes, and shows what comes back.
"use strict";

const one = (id) => document.getElementById(id);
const main = document.querySelector("main");
const mostBytes = Number(main.dataset.mostBytes);
const sureFrom = main.dataset.sureFrom === undefined ? null : Number(main.dataset.sureFrom);

let picture = null; // the file that was chosen last
let asking = false; // one question at a time: the server answers them in turn anyway
let changed = false; // whether there is something newer to ask

const percent = (fraction) => {
  const shown = (100 * fraction).toFixed(2);
  return `${shown === "100.00" && fraction < 1 ? "> 99.99" : shown}\u00a0%`; // nobody is as sure as that
};
const label = () => one("corruption").selectedOptions[0].label;
const severity = () => Number(one("severity").value);

function describeSeverity() {
  const level = severity();
  const words = level ? `${level} of ${one("severity").max}: ${label().toLowerCase()}` : "0: as it is";
  one("severity-value").textContent = words;
  one("severity").setAttribute("aria-valuetext", words);
}

// What was shown before is of another picture, or of another corruption, so it goes.
function complain(words) {
  one("error").textContent = words;
  one("error").hidden = false;
  one("said").textContent = "No prediction.";
  one("seen").hidden = true;
  one("votes").querySelectorAll("li").forEach((row) => fill(row, "–", "–", 0));
  showShifted(false);
  showBin(null);
}

function fill(row, name, number, share) {
  row.querySelector(".class").textContent = name;
  row.querySelector(".number").textContent = number;
  row.querySelector(".fill").style.width = `${100 * share}%`;
}

function choose(file) {
  if (!file) return;
  one("file-name").textContent = file.name || "a pasted picture";
  picture = file.size > mostBytes ? null : file;
  if (picture) ask();
  else complain(`The picture’s file is larger than ${mostBytes / 2 ** 20} MiB, the most that is taken.`);
}

async function ask() {
  describeSeverity();
  if (!picture) return;
  changed = true;
  if (asking) return;
  asking = true;
  one("result").setAttribute("aria-busy", "true");
  while (changed) {
    changed = false;
    await askOnce();
  }
  asking = false;
  one("result").removeAttribute("aria-busy");
}

async function askOnce() {
  const query = new URLSearchParams({ corruption: one("corruption").value, severity: severity() });
  const seen = severity() ? `, ${label().toLowerCase()} at severity ${severity()}` : "";
  try {
    const response = await fetch(`look?${query}`, { method: "POST", body: picture });
    const answer = await response.json();
    if (changed) return; // what is shown next is newer
    if (response.ok) show(answer, seen);
    else complain(response.status === 400 && "path" in answer ? `This file ${answer.error}.` : `${answer.error}.`);
  } catch {
    complain("The server does not answer, or the file cannot be read any more. Is counterpoint serve still running?");
  }
}

function show({ prediction, picture: source, bin }, seen) {
  one("error").hidden = true;
  const image = one("seen");
  image.src = source;
  image.alt = `The picture as the network sees it${seen}`;
  image.hidden = false;
  showVotes(prediction);
  showSaid(prediction);
  showShifted(severity() > 0);
  showBin(bin);
}

function showVotes(prediction) {
  const opinions = prediction.members.length > 1 ? [prediction, ...prediction.members] : [prediction];
  one("votes").querySelectorAll("li").forEach((row, place) => {
    const opinion = opinions[place];
    fill(row, opinion.class, percent(opinion.confidence), opinion.confidence);
    row.classList.toggle("other", opinion.class !== prediction.class);
  });
}

function showSaid(prediction) {
  const said = one("said");
  const agreeing = prediction.members.filter((member) => member.class === prediction.class).length;
  const members = prediction.members.length;
  const others = members < 2 ? "" : agreeing === members ? ` ${members === 2 ? "Both" : `All ${members}`} members agree.` : ` ${agreeing} of ${members} members agree.`;
  const name = document.createElement("strong");
  name.textContent = prediction.class;
  said.replaceChildren(name, `, ${percent(prediction.confidence)}.${others} `);
  if (prediction.sure !== undefined) {
    const sure = document.createElement("span");
    sure.className = prediction.sure ? "sure" : "not-sure";
    sure.textContent = prediction.sure ? "sure" : "not sure";
    said.append(sure);
  }
}

function showBin(bin) {
  if (!one("bins")) return;
  document.querySelectorAll(".place").forEach((place, number) => place.classList.toggle("here", number === bin));
  one("bin").textContent = bin === null ? "" : one("bins").children[bin].textContent;
}

// Beside “sure”, because the threshold was found on clean images.
function showShifted(isShown) {
  if (one("shifted")) one("shifted").hidden = !isShown;
}

one("file").addEventListener("change", (event) => choose(event.target.files[0]));
one("corruption").addEventListener("change", ask);
one("severity").addEventListener("input", ask);
document.addEventListener("paste", (event) => choose(event.clipboardData.files[0]));
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  one("drop").classList.add("over-it");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) one("drop").classList.remove("over-it");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  one("drop").classList.remove("over-it");
  choose(event.dataTransfer.files[0]);
});
document.querySelectorAll(".mark").forEach((mark) => { mark.style.left = `calc(${100 * sureFrom}% - 1px)`; });
describeSeverity();
