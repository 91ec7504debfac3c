/** Whether the model reads the time with each message. A function gives the time. */
export type CurrentDateTimeOption = boolean | (() => Date);

/** The line that names the time of a message, in the time zone of this machine. Empty: none is wanted. */
export function currentDateTime(option: CurrentDateTimeOption): string {
  if (option === false) return "";
  return `<current_datetime>${toLocalIso(option === true ? new Date() : option())}</current_datetime>`;
}

function toLocalIso(date: Date): string {
  const offset = -date.getTimezoneOffset();
  const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, -1);
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((part) => String(part).padStart(2, "0"));
  return `${local}${offset < 0 ? "-" : "+"}${hours}:${minutes}`;
}
