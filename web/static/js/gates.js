import { keepFresh } from "./part.js";

keepFresh({ kinds: ["gate.decided"] });
