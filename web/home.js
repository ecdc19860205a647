for (const node of document.querySelectorAll(".origin")) node.textContent = location.origin;
