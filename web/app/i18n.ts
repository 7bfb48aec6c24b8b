/** The page's languages, and how each writes days and times. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { en, type Locale } from "./locales/en.js";
import { ru } from "./locales/ru.js";
import { uz } from "./locales/uz.js";
import { stored } from "./stored.js";

export type Language = "en" | "ru" | "uz";
export const languages: Record<Language, Locale> = { en, ru, uz };

export const language = stored<Language>("xabar:language", (value) =>
  value && value in languages ? (value as Language) : preferred(),
);

function preferred(): Language {
  for (const tag of navigator.languages) {
    const short = tag.slice(0, 2);
    if (short in languages) return short as Language;
  }
  return "en";
}

/** What components need to speak: words, days, times. */
export interface Speech {
  language: Language;
  t: Locale;
  /** 14:05 */
  time(at: Date): string;
  /** Today, Yesterday, or the date. */
  day(at: Date, now: Date): string;
  /** In a list: the time today, else a short date. */
  short(at: Date, now: Date): string;
  /** With the day unless it is today. */
  moment(at: Date, now: Date): string;
  ago(at: Date, now: Date): string;
}

// Browsers carry no or little data for Uzbek, so its dates are written by hand.
const uzMonths = ["yanvar", "fevral", "mart", "aprel", "may", "iyun", "iyul", "avgust", "sentabr", "oktabr", "noyabr", "dekabr"];
const uzDays = ["yakshanba", "dushanba", "seshanba", "chorshanba", "payshanba", "juma", "shanba"];

export function speech(language: Language): Speech {
  const t = languages[language];
  const clock = new Intl.DateTimeFormat(language === "uz" ? "ru" : language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const full = new Intl.DateTimeFormat(language, { weekday: "long", day: "numeric", month: "long" });
  const withYear = new Intl.DateTimeFormat(language, { day: "numeric", month: "long", year: "numeric" });
  const brief = new Intl.DateTimeFormat(language === "uz" ? "ru" : language === "en" ? "en-GB" : language, { day: "2-digit", month: "2-digit", year: "2-digit" });
  const date = (at: Date, now: Date) => {
    const sameYear = at.getFullYear() === now.getFullYear();
    if (language !== "uz") return (sameYear ? full : withYear).format(at);
    const day = `${at.getDate()}-${uzMonths[at.getMonth()]}`;
    return sameYear ? `${day}, ${uzDays[at.getDay()]}` : `${at.getFullYear()}-yil ${day}`;
  };
  const self: Speech = {
    language, t,
    time: (at) => clock.format(at),
    day(at, now) {
      const days = daysBetween(at, now);
      return days === 0 ? t.time.today : days === 1 ? t.time.yesterday : date(at, now);
    },
    short(at, now) {
      const days = daysBetween(at, now);
      return days === 0 ? clock.format(at) : days === 1 ? t.time.yesterday : brief.format(at);
    },
    moment(at, now) {
      return daysBetween(at, now) === 0 ? clock.format(at) : t.time.at(self.day(at, now), clock.format(at));
    },
    ago(at, now) {
      const minutes = Math.floor((now.getTime() - at.getTime()) / 60_000);
      if (minutes < 1) return t.time.justNow;
      return minutes < 60 ? t.time.minutes(minutes) : self.moment(at, now);
    },
  };
  return self;
}

/** Midnights between two moments, in local time. */
function daysBetween(a: Date, b: Date): number {
  const midnight = (d: Date) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime();
  return Math.round((midnight(b) - midnight(a)) / 86_400_000);
}

export const SpeechContext = createContext<Speech>(speech("en"));
export const useSpeech = () => useContext(SpeechContext);

/** What to show for an error's code. */
export function errorText(t: Locale, code: string): string {
  return t.error[code] ?? t.error["other"]!;
}
