import type { Locale } from "./en.js";

const rules = new Intl.PluralRules("ru");
const plural = (n: number, one: string, few: string, many: string) => {
  const form = rules.select(n);
  return `${n} ${form === "one" ? one : form === "few" ? few : many}`;
};

export const ru: Locale = {
  name: "Русский",
  tagline: "Сообщения, которые всегда доходят.",
  signIn: {
    title: "Вход", yourName: "Ваше имя", start: "Начать общение", token: "Токен", withToken: "У меня есть токен",
    withName: "Войти по имени", tokenHint: "Вставьте JSON Web Token, который принимает этот шлюз.",
    recent: "Недавно заходили", another: "Для второго пользователя откройте другую вкладку: каждая помнит своего.",
    failed: "Войти не удалось", devView: "Режим разработчика: два пользователя рядом", notDemo: "На этом шлюзе нет деморежима.",
  },
  status: {
    connecting: "Соединение…", syncing: "Обновление…", online: "На связи",
    offline: "Нет соединения. Написанное отправится, когда оно вернётся.", refused: "Шлюз отказал в соединении",
    stopped: "Отключено", signInAgain: "Войти снова",
    waiting: (n) => plural(n, "сообщение ждёт", "сообщения ждут", "сообщений ждут"),
    restored: "Сервер восстановлен из резервной копии. Последние сообщения до этого потеряны.", understood: "Понятно",
  },
  list: {
    title: "Беседы", search: "Поиск", empty: "Бесед пока нет", emptyHint: "Выберите, кому написать.",
    start: "Новая беседа", contacts: "Контакты", nothing: "Ничего не найдено", you: "Вы", draft: "Черновик", muted: "Без звука",
    unread: (n) => plural(n, "непрочитанное сообщение", "непрочитанных сообщения", "непрочитанных сообщений"),
    online: "В сети", noMessages: "Сообщений пока нет", settings: "Настройки",
  },
  contacts: {
    title: "Новая беседа", search: "Поиск контактов", none: "Пока никого нет", noneHint: "Откройте другую вкладку и войдите под другим именем.",
    group: "Новая группа", groupTitle: "Название группы", members: (n) => plural(n, "участник", "участника", "участников"),
    create: "Создать группу", chosen: (n) => `Выбрано: ${n}`, back: "Назад",
  },
  thread: {
    choose: "Выберите беседу", chooseHint: "Или начните новую.", back: "Назад к беседам", info: "Сведения",
    messages: (title) => `Сообщения: ${title}`, beginning: "Это начало беседы.", loading: "Загрузка прежних сообщений…",
    unread: "Новые сообщения", jump: "К последнему сообщению", typing: (names) => `${names} печатает…`,
    typingMany: (names) => `${names} печатают…`, typingShort: "печатает…", and: " и ", deleted: "Сообщение удалено",
    edited: "изменено", unknownReply: "Сообщение", conversationNotFound: "Этой беседы здесь нет.",
  },
  presence: { online: "в сети", lastSeen: (when) => `в сети: ${when}`, offline: "не в сети" },
  message: {
    reply: "Ответить", info: "Кто прочитал", copy: "Копировать", more: "Действия", retry: "Отправить снова", discard: "Удалить",
    sending: "Отправляется", waiting: "Ждёт отправки", failed: "Не отправлено", sent: "Отправлено", delivered: "Доставлено", read: "Прочитано",
    replyTo: (name) => `Ответ: ${name}`, from: (name, time) => `${name}, ${time}`, copied: "Скопировано",
  },
  composer: {
    label: "Сообщение", placeholder: "Напишите сообщение", send: "Отправить", cancelReply: "Отменить ответ",
    left: (n) => `Осталось: ${plural(n, "символ", "символа", "символов")}`,
    over: (n) => `Лишних: ${plural(n, "символ", "символа", "символов")}`,
  },
  receipts: {
    title: "Сообщение", delivered: "Доставлено", read: "Прочитано", waiting: "Ещё не доставлено", yes: "да", none: "Больше здесь никого нет.",
    sentAt: "Отправлено",
  },
  info: {
    title: "Сведения", members: "Участники", owner: "владелец", admin: "админ", mute: "Без звука", unmute: "Со звуком", leave: "Выйти из группы",
    left: "Вы вышли из группы", write: "Написать", since: "в этой беседе", you: "вы", reallyLeave: "Выйти из группы? Вы больше не будете её видеть.",
    add: "Добавить участников",
  },
  settings: {
    title: "Настройки", language: "Язык", theme: "Оформление", system: "Как в системе", light: "Светлое", dark: "Тёмное",
    notifications: "Уведомления", notifyOn: "Включить", notifyOff: "Выключить", notifyDenied: "Запрещены в настройках браузера.",
    notifyHere: "Показываются, пока страница открыта.", notifyPush: "Показываются, даже когда страница закрыта.", notifyInsecure: "Нужен защищённый адрес (https или localhost).",
    quiet: "Тихие часы", quietHint: "Уведомления ждут их окончания.", from: "С", until: "До", quietOn: "Включить тихие часы",
    save: "Сохранить", saved: "Сохранено", signOut: "Выйти", close: "Закрыть", developer: "Режим разработчика", cancel: "Отмена",
    signedInAs: (name) => `Вы вошли как ${name}`,
  },
  notification: { from: (name) => name, inGroup: (name, title) => `${name} в «${title}»`, many: (n) => plural(n, "новое сообщение", "новых сообщения", "новых сообщений") },
  time: { today: "Сегодня", yesterday: "Вчера", justNow: "только что", minutes: (n) => `${n} мин назад`, at: (day, time) => `${day}, ${time}` },
  error: {
    text_empty: "Нечего отправлять.", text_too_long: "Текст слишком длинный.", invalid_text: "В тексте есть символ, который нельзя отправить.",
    not_found: "Этого здесь больше нет.", forbidden: "Это не разрешено.", unauthenticated: "Токен недействителен.", token_expired: "Срок токена истёк.",
    rate_limited: "Слишком часто. Попробуйте чуть позже.", offline: "Нет соединения.", timeout: "Ответ не пришёл вовремя.",
    conflict: "Это уже использовано для другого.", revoked: "Этот сеанс завершён.", other: "Что-то пошло не так.",
  },
  dev: {
    title: "Режим разработчика", intro: "Два пользователя, один шлюз. Пишите в одной панели и смотрите, как проходят события Socket.IO обоих.",
    leave: "Назад к беседам", pane: (n) => `Пользователь ${n}`, offline: "Без сети", delay: "Задержка", loseAnswer: "Потерять ответ", loseAck: "Потерять ack",
    loseAnswerHint: "Ответ на следующую отправку пропадёт: исходящие отправят её снова, и шлюз ответит duplicate.",
    loseAckHint: "Следующее сообщение не будет подтверждено: останется одна галочка, пока его не прочитают.",
    log: "События", clear: "Очистить", pause: "Пауза", resume: "Дальше", filter: "Фильтр", empty: "Пока ничего.",
    toServer: "шлюзу", toClient: "странице", local: "здесь", answer: "ответ", ack: "ack", event: "событие", state: "соединение", fault: "сбой", none: "нет", ms: (n) => `${n} мс`,
    hideTyping: "Скрыть typing и presence",
  },
};
