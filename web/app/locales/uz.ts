import type { Locale } from "./en.js";

// After a number Uzbek nouns stay in the singular.
export const uz: Locale = {
  name: "Oʻzbekcha",
  tagline: "Har doim yetib boradigan xabarlar.",
  signIn: {
    title: "Kirish", yourName: "Ismingiz", start: "Suhbatni boshlash", token: "Token", withToken: "Menda token bor",
    withName: "Ism bilan kirish", tokenHint: "Ushbu shlyuz qabul qiladigan JSON Web Tokenni joylang.",
    recent: "Yaqinda kirganlar", another: "Ikkinchi foydalanuvchi uchun boshqa varaq oching: har biri oʻzinikini eslab qoladi.",
    failed: "Kirib boʻlmadi", devView: "Dasturchi koʻrinishi: ikki foydalanuvchi yonma-yon", notDemo: "Bu shlyuzda demo rejimi yoʻq.",
  },
  status: {
    connecting: "Ulanmoqda…", syncing: "Yangilanmoqda…", online: "Ulangan",
    offline: "Aloqa yoʻq. Yozganlaringiz aloqa tiklanganda yuboriladi.", refused: "Shlyuz ulanishni rad etdi",
    stopped: "Uzilgan", signInAgain: "Qayta kirish", waiting: (n) => `${n} ta xabar kutmoqda`,
    restored: "Server zaxira nusxadan tiklandi. Undan oldingi eng soʻnggi xabarlar yoʻqoldi.", understood: "Tushunarli",
  },
  list: {
    title: "Suhbatlar", search: "Qidirish", empty: "Hali suhbatlar yoʻq", emptyHint: "Kimga yozishni tanlang.",
    start: "Yangi suhbat", contacts: "Kontaktlar", nothing: "Hech narsa topilmadi", you: "Siz", draft: "Qoralama", muted: "Ovozsiz",
    unread: (n) => `${n} ta oʻqilmagan xabar`, online: "Onlayn", noMessages: "Hali xabarlar yoʻq", settings: "Sozlamalar",
  },
  contacts: {
    title: "Yangi suhbat", search: "Kontaktlarni qidirish", none: "Hali hech kim yoʻq", noneHint: "Boshqa varaq oching va boshqa ism bilan kiring.",
    group: "Yangi guruh", groupTitle: "Guruh nomi", members: (n) => `${n} ta aʼzo`, create: "Guruh yaratish", chosen: (n) => `${n} ta tanlandi`, back: "Orqaga",
  },
  thread: {
    choose: "Suhbatni tanlang", chooseHint: "Yoki yangisini boshlang.", back: "Suhbatlarga qaytish", info: "Maʼlumot",
    messages: (title) => `Xabarlar: ${title}`, beginning: "Bu suhbatning boshi.", loading: "Oldingi xabarlar yuklanmoqda…",
    unread: "Yangi xabarlar", jump: "Oxirgi xabarga oʻtish", typing: (names) => `${names} yozmoqda…`,
    typingMany: (names) => `${names} yozmoqda…`, typingShort: "yozmoqda…", and: " va ", deleted: "Xabar oʻchirilgan",
    edited: "tahrirlangan", unknownReply: "Xabar", conversationNotFound: "Bu suhbat bu yerda yoʻq.",
  },
  presence: { online: "onlayn", lastSeen: (when) => `oxirgi marta: ${when}`, offline: "oflayn" },
  message: {
    reply: "Javob berish", info: "Kim oʻqigan", copy: "Nusxalash", more: "Amallar", retry: "Qayta yuborish", discard: "Oʻchirish",
    sending: "Yuborilmoqda", waiting: "Yuborilishini kutmoqda", failed: "Yuborilmadi", sent: "Yuborildi", delivered: "Yetkazildi", read: "Oʻqildi",
    replyTo: (name) => `Javob: ${name}`, from: (name, time) => `${name}, ${time}`, copied: "Nusxalandi",
  },
  composer: {
    label: "Xabar", placeholder: "Xabar yozing", send: "Yuborish", cancelReply: "Javobni bekor qilish",
    left: (n) => `${n} ta belgi qoldi`, over: (n) => `${n} ta belgi ortiqcha`,
  },
  receipts: {
    title: "Xabar", delivered: "Yetkazildi", read: "Oʻqildi", waiting: "Hali yetkazilmagan", yes: "ha", none: "Bu yerda boshqa hech kim yoʻq.", sentAt: "Yuborildi",
  },
  info: {
    title: "Maʼlumot", members: "Aʼzolar", owner: "egasi", admin: "admin", mute: "Ovozsiz qilish", unmute: "Ovozni yoqish", leave: "Guruhdan chiqish",
    left: "Siz guruhdan chiqdingiz", write: "Yozish", since: "bu suhbatda", you: "siz", reallyLeave: "Guruhdan chiqasizmi? Uni boshqa koʻrmaysiz.", add: "Aʼzo qoʻshish",
  },
  settings: {
    title: "Sozlamalar", language: "Til", theme: "Koʻrinish", system: "Tizimdagidek", light: "Yorugʻ", dark: "Qorongʻi",
    notifications: "Bildirishnomalar", notifyOn: "Yoqish", notifyOff: "Oʻchirish", notifyDenied: "Brauzer sozlamalarida taqiqlangan.",
    notifyHere: "Sahifa ochiq turganda koʻrsatiladi.", notifyPush: "Sahifa yopiq boʻlganda ham koʻrsatiladi.", notifyInsecure: "Himoyalangan manzil kerak (https yoki localhost).",
    quiet: "Tinch soatlar", quietHint: "Bildirishnomalar ular tugashini kutadi.", from: "Dan", until: "Gacha", quietOn: "Tinch soatlarni yoqish",
    save: "Saqlash", saved: "Saqlandi", signOut: "Chiqish", close: "Yopish", developer: "Dasturchi koʻrinishi", cancel: "Bekor qilish",
    signedInAs: (name) => `${name} sifatida kirilgan`,
  },
  notification: { from: (name) => name, inGroup: (name, title) => `${name}, ${title}`, many: (n) => `${n} ta yangi xabar` },
  time: { today: "Bugun", yesterday: "Kecha", justNow: "hozirgina", minutes: (n) => `${n} daqiqa oldin`, at: (day, time) => `${day}, ${time}` },
  error: {
    text_empty: "Yuboriladigan narsa yoʻq.", text_too_long: "Matn juda uzun.", invalid_text: "Matnda yuborib boʻlmaydigan belgi bor.",
    not_found: "Bu endi bu yerda yoʻq.", forbidden: "Bunga ruxsat yoʻq.", unauthenticated: "Token yaroqsiz.", token_expired: "Token muddati tugagan.",
    rate_limited: "Juda koʻp. Birozdan soʻng urinib koʻring.", offline: "Aloqa yoʻq.", timeout: "Javob oʻz vaqtida kelmadi.",
    conflict: "Bu boshqa narsa uchun ishlatilgan.", revoked: "Bu seans tugatilgan.", other: "Nimadir xato ketdi.",
  },
  dev: {
    title: "Dasturchi koʻrinishi", intro: "Ikki foydalanuvchi, bitta shlyuz. Bir panelda yozing va ikkalasining Socket.IO hodisalarini kuzating.",
    leave: "Suhbatlarga qaytish", pane: (n) => `${n}-foydalanuvchi`, offline: "Oflayn", delay: "Kechikish", loseAnswer: "Javobni yoʻqotish", loseAck: "Ackni yoʻqotish",
    loseAnswerHint: "Keyingi yuborishga javob tashlab yuboriladi: xabar qayta yuboriladi va shlyuz duplicate deb javob beradi.",
    loseAckHint: "Keyingi xabar tasdiqlanmaydi: oʻqilguncha bitta belgi qoladi.",
    log: "Hodisalar", clear: "Tozalash", pause: "Toʻxtatish", resume: "Davom etish", filter: "Filtr", empty: "Hali hech narsa yoʻq.",
    toServer: "shlyuzga", toClient: "sahifaga", local: "shu yerda", answer: "javob", ack: "ack", event: "hodisa", state: "ulanish", fault: "nosozlik", none: "yoʻq", ms: (n) => `${n} ms`,
    hideTyping: "typing va presenceʼni yashirish",
  },
};
