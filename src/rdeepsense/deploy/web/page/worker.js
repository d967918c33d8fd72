// Keeps the page's own files, so that it opens without a network. A new export is a new version.
const VERSION = "@version";
const FILES = "@files".split(" ");

self.addEventListener("install", event =>
  event.waitUntil(caches.open(VERSION).then(cache => cache.addAll(FILES))
    .then(() => self.skipWaiting())));

self.addEventListener("activate", event =>
  event.waitUntil(caches.keys()
    .then(names => Promise.all(names.filter(name => name.startsWith("rdeepsense-") &&
      name.split("-")[1] === VERSION.split("-")[1] && name !== VERSION)
      .map(name => caches.delete(name))))
    .then(() => self.clients.claim())));

self.addEventListener("fetch", event => {
  if (event.request.method !== "GET") return;
  event.respondWith(caches.open(VERSION)
    .then(cache => cache.match(event.request, { ignoreSearch: true }))
    .then(found => found ?? fetch(event.request)));
});
