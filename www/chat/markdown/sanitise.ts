// HTML to nodes of the page, without anything that could run or fetch.
import DOMPurify, { type Config } from 'dompurify'
import { policy } from '../../shared/trusted.ts'

const CONFIG: Config & { RETURN_DOM_FRAGMENT: true } = {
  ALLOWED_TAGS: [
    '#text', 'a', 'blockquote', 'br', 'button', 'code', 'del', 'div', 'em', 'h3', 'hr', 'li', 'ol', 'p', 'pre', 'span', 'strong', 'table',
    'tbody', 'td', 'th', 'thead', 'tr', 'ul'
  ],
  ALLOWED_ATTR: ['class', 'href', 'rel', 'start', 'tabindex', 'target', 'type'],
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
  ...(policy && { TRUSTED_TYPES_POLICY: policy as never })
}

export const sanitised = (html: string): DocumentFragment => DOMPurify.sanitize(html, CONFIG)
